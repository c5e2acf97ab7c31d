/** A page of the private listener: its path, its data, and its content. */

import type { ConsoleParts } from '../api/listener-slot.ts';
import type { Status } from '../status/status.ts';
import type { Level } from '../terms/evaluation.ts';
import { counted } from '../terms/formats.ts';
import type { Assets } from './assets.ts';
import type { PageContent } from './layout.ts';
import { type Html, html, withCommands } from './markup.ts';
import type { PageState } from './page-state.ts';

export interface PageRequest {
  url: URL;
  state: PageState;
  /** Time at which the page is rendered. */
  nowUs: number;
  /** Last part of the path of a page about one item, decoded; '' for a list. */
  id: string;
  status: Status;
  assets: Assets;
  /** Aborted when the client has closed the connection, and after the timeout of queries. */
  signal: AbortSignal;
}

/** Another address of the page, with the same content: the state in its canonical form. */
export interface Redirect {
  location: string;
}

export interface PageRoute {
  path: `/${string}`;
  /** Name in the navigation. */
  label: string;
  /** Key that opens the page after `g`. */
  key: string;
  /** Group of the navigation: the data, or the operation of the receiver. */
  group: 'data' | 'operation';
  /** Parts of the state that limit the content. */
  scope: readonly ('period' | 'subscription')[];
  /** Parts of the status that the page is about; a problem marks the page in the navigation. */
  parts?: readonly string[] | 'all';
  /** Returns a number that the navigation shows, and its level; null for none. */
  count?(status: Pick<Status, 'alerts'>): { count: number; level: Level } | null;
  /** Keys of the page, and what they do. */
  shortcuts?: readonly (readonly [keys: string, text: string])[];
  /** Default period, such as `24h`. */
  back: string;
  /** Renders the page. Rejects with `invalid` for a state that cannot be shown, and as the ports do. */
  list(parts: ConsoleParts, request: PageRequest): Promise<PageContent | Redirect>;
  /** Renders the page about one item, below the path. Rejects with `not_found`. */
  item?(parts: ConsoleParts, request: PageRequest): Promise<PageContent>;
}

/** Returns the names of registered subscriptions, and of the paths that have received notifications. */
export async function subscriptionNames({
  administration,
}: Pick<ConsoleParts, 'administration'>): Promise<string[]> {
  const [registered, marks] = await Promise.all([
    administration.registrations(),
    administration.deliveryMarks(),
  ]);
  const names = [...registered.map(({ name }) => name), ...marks.map((one) => one.subscription)];
  return [...new Set(names)].filter((name) => name !== null).toSorted();
}

/**
 * Returns the number of notifications that the product index lacks. Call it before reading the index: if the index
 * catches up meanwhile, the page is newer than it states.
 */
export async function indexLag({ products, notifications }: ConsoleParts): Promise<number> {
  const [indexed, last] = await Promise.all([
    products.indexedPosition(),
    notifications.lastPosition(),
  ]);
  return Math.max(0, last - indexed);
}

export function lagNote(lag: number): Html | string {
  if (lag === 0) return '';
  const missing = counted(lag, 'notification is', 'notifications are');
  return html`<p class="lag">${missing} not indexed yet. If this stays, check the index: ${withCommands('`earshot admin index`')}</p>`;
}
