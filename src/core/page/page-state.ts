/** State of a page in its URL, so that a copied link shows the same. */
import { z } from 'zod';
import { periodOf } from '../api/api-route.ts';
import { AppError } from '../terms/app-error.ts';
import { durationUs, parseDate } from '../terms/dates.ts';
import { subscriptionEvents } from '../terms/subscription.ts';

/** Parameters of all pages; each page uses some of them, and may have its own. */
const parameters = z.object({
  since: z.string().trim().optional(),
  until: z.string().trim().optional(),
  subscription: z.string().trim().optional(),
  event: z.enum(subscriptionEvents).optional().catch(undefined),
  filter: z.string().trim().optional(),
});

export interface PageState {
  /** As in the URL: an ISO 8601 time, or a time before now such as `24h`; undefined for the default. */
  since: string | undefined;
  until: string | undefined;
  subscription: string | undefined;
  event: (typeof subscriptionEvents)[number] | undefined;
  /** A filter expression, not checked; '' for all. */
  filter: string;
  /** Period shown, at most 100 days. */
  sinceUs: number;
  untilUs: number;
}

/**
 * Reads the state. `back` is the default period before now. Throws `invalid` for a time that cannot be read, and for
 * an empty or too long period.
 */
export function readPageState(
  url: URL,
  { nowUs, back }: { nowUs: number; back: string },
): PageState {
  const given = Object.fromEntries(
    [...url.searchParams].filter(([, value]) => value.trim() !== ''),
  );
  const { since, until, subscription, event, filter = '' } = parameters.parse(given);
  const untilUs = until === undefined ? nowUs : Math.min(timeOf(until, nowUs), nowUs);
  const sinceUs = timeOf(since ?? back, since === undefined ? untilUs : nowUs);
  periodOf({ since: sinceUs, until: untilUs }, { nowUs, backUs: 0 });
  if (sinceUs < 0) throw new AppError('invalid', 'The period begins before 1970.');
  return { since, until, subscription, event, filter, sinceUs, untilUs };
}

function timeOf(text: string, nowUs: number): number {
  const backUs = durationUs(text);
  if (backUs !== null) return nowUs - backUs;
  const date = parseDate(text);
  if (date !== null) return date.us;
  throw new AppError(
    'invalid',
    `${JSON.stringify(text)} is not a time. Use ISO 8601, such as 2026-05-01T12:00:00Z, or a time before now, such as 24h or 7d.`,
  );
}

/** Returns a link to a page with a state. Undefined and empty values are left out. */
export function linkTo(
  path: string,
  state: Readonly<Record<string, string | number | null | undefined>>,
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value !== undefined && value !== null && value !== '') search.set(name, String(value));
  }
  // Colons and commas need no escape in a query (RFC 3986, 3.4), and make links readable.
  const text = search.toString().replaceAll('%3A', ':').replaceAll('%2C', ',');
  return text === '' ? path : `${path}?${text}`;
}

const isRelative = (text: string) => durationUs(text) !== null;

/**
 * Returns the part of a state that the navigation passes on. An absolute period belongs to one page: elsewhere, it
 * would hide new data.
 */
export function navigationState({ since, subscription }: PageState) {
  return { since: since !== undefined && isRelative(since) ? since : undefined, subscription };
}

/** Returns true for a period that does not end now, or begins at a fixed time. */
export function isAbsolute({ since, until }: Pick<PageState, 'since' | 'until'>): boolean {
  return until !== undefined || (since !== undefined && !isRelative(since));
}

/** Returns the part of a state that links to the same data on other pages contain. */
export function sharedState({ since, until, subscription }: PageState) {
  return { since, until, subscription };
}

/** Returns a link to the list of the notifications received in a time span of whole minutes. */
export function listOfSpan(
  fromUs: number,
  untilUs: number,
  state: { subscription?: string | undefined; filter?: string | undefined },
): string {
  return linkTo('/live', { since: isoMinute(fromUs), until: isoMinute(untilUs), ...state });
}

/** `2026-05-01T12:00Z` */
export function isoMinute(us: number): string {
  return `${new Date(us / 1000).toISOString().slice(0, 16)}Z`;
}

/** Returns the path of the page about a product. */
export function productLink(productId: string): string {
  return `/products/${encodeURIComponent(productId)}`;
}
