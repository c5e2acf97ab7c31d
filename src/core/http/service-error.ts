/** Error responses of the catalogue: their unchanged text, and the resulting AppError. */
import { z } from 'zod';
import { AppError, type ErrorCode } from '../terms/app-error.ts';
import { printable } from '../terms/text.ts';
import { retryAfterMs } from './bounded-fetch.ts';
import type { OutboundAnswer } from './outbound-client.ts';

/** Text of an error response. */
export interface ServiceMessage {
  /** Null if there is none, or only a list. */
  text: string | null;
  /** List of faults, for example `query.$top: Input should be …`. */
  lines: readonly string[];
  requestId: string | null;
}

const textCharactersMax = 4_000;

const linesMax = 20;

/** The three forms of `detail` (facts, catalogue 1.4). */
const errorBody = z.object({
  detail: z.union([
    z.string(),
    z.object({ message: z.string(), request_id: z.string().nullish().catch(null) }),
    // Ignores `input`: it repeats the request, including the endpoint's password.
    z.array(
      z
        .union([
          z.string(),
          z.object({ loc: z.array(z.union([z.string(), z.number()])).catch([]), msg: z.string() }),
        ])
        .catch('(a fault without a message)'),
    ),
  ]),
});

/** Reads the text of an error response; replaces `secrets` in it by `…`. */
export function readServiceMessage(
  answer: OutboundAnswer,
  secrets: readonly string[],
): ServiceMessage {
  const safe = (text: string, charactersMax = textCharactersMax) =>
    foreignText(text, { secrets, charactersMax });
  const parsed = errorBody.safeParse(answer.json);
  const detail = parsed.data?.detail ?? null;
  const inBody =
    typeof detail === 'object' && detail !== null && 'message' in detail ? detail : null;
  const id = answer.headers.get('request-id') ?? inBody?.request_id ?? '';
  const requestId = safe(id, 100) || null;
  if (Array.isArray(detail)) {
    const lines = detail.map((item) => safe(typeof item === 'string' ? item : lineOf(item)));
    const rest = lines.length > linesMax ? [`… lines not shown: ${lines.length - linesMax}`] : [];
    return { text: null, lines: [...lines.slice(0, linesMax), ...rest], requestId };
  }
  const text = typeof detail === 'string' ? detail : inBody?.message;
  const shown = text === undefined ? safe(hintOf(answer.text), hintCharactersMax) : safe(text);
  return { text: shown || null, lines: [], requestId };
}

/**
 * Creates the AppError for an error response. `purpose` completes "refused to …". Its facts are the `status`
 * and `retryAfterMs`, the delay that the service requests, or null.
 */
export function serviceError(
  answer: OutboundAnswer,
  { text, lines, requestId }: ServiceMessage,
  purpose: string,
  code: ErrorCode = codeOf(answer.status),
): AppError {
  const id = requestId === null ? '' : `, request id ${requestId}`;
  const response = lines.length > 0 ? 'Response:' : text === null ? null : `Response: ${text}`;
  const [message, ...next] = sentencesOf(code, answer, purpose, `(${answer.status}${id})`);
  const advice = [...next, ...(response === null ? [] : [response])].join(' ') || undefined;
  const facts = { status: answer.status, retryAfterMs: retryAfterMs(answer.headers) };
  return new AppError(code, message, { advice, details: lines, facts });
}

function codeOf(status: number): ErrorCode {
  if (status === 401) return 'unauthorized';
  if (status === 409) return 'conflict';
  if (status === 429) return 'too_many';
  return status >= 400 && status < 500 && status !== 408 ? 'invalid' : 'unavailable';
}

/** Returns message and advice; `facts` are the status and the request id. */
function sentencesOf(
  code: ErrorCode,
  { status, headers }: OutboundAnswer,
  purpose: string,
  facts: string,
): [message: string, advice?: string] {
  const refused = `The catalogue refused to ${purpose} ${facts}`;
  const couldNot = `The catalogue could not ${purpose} ${facts}`;
  if (code === 'unauthorized') return [`${refused}: the access token is not valid.`];
  if (code === 'conflict') return [`${refused}: the request conflicts with existing data.`];
  if (code === 'not_found') {
    const advice = 'To list all: `earshot subscriptions list`.';
    return [`${couldNot}: the subscription does not exist.`, advice];
  }
  if (code === 'too_many') {
    const waitMs = retryAfterMs(headers);
    const when = waitMs === null ? 'later' : `in ${Math.ceil(waitMs / 1000)} seconds`;
    return [`${refused}: too many requests.`, `Retry ${when}.`];
  }
  if (status >= 300 && status < 400) {
    return [
      `The catalogue did not ${purpose}: it redirects to ${originOf(headers)} ${facts}.`,
      'earshot does not follow redirects, to protect the access token. Check EARSHOT_CATALOGUE_URL.',
    ];
  }
  if (code === 'unavailable') return [`${couldNot}.`, 'Retry later.'];
  const isWrongUrl = status === 404 || status === 405;
  return [`${refused}.`, ...(isWrongUrl ? ['Check EARSHOT_CATALOGUE_URL.'] : [])] as [string];
}

/** Returns only the origin of a redirect: the rest of the URL may contain anything. */
function originOf(headers: Headers): string {
  const origin = URL.parse(headers.get('location') ?? '')?.origin ?? 'null';
  return origin === 'null' ? 'another address' : origin;
}

function lineOf({ loc, msg }: { loc: readonly (string | number)[]; msg: string }): string {
  return loc.length === 0 ? msg : `${loc.join('.')}: ${msg}`;
}

/** Replaces a secret, and the end of a truncated text. */
const ellipsis = '…';

/** Maximum length of the excerpt of a body in an unknown format. */
export const hintCharactersMax = 200;

/**
 * Returns the text unchanged, except: our secrets, in the forms in which a service may repeat them, become
 * `…`; control characters and marks that change the direction of text are replaced; text over
 * `charactersMax` is truncated.
 */
export function foreignText(
  text: string,
  options: { secrets: readonly string[]; charactersMax: number },
): string {
  const clean = printable(withoutSecrets(text, options.secrets).trim());
  const { charactersMax } = options;
  return clean.length <= charactersMax
    ? clean
    : `${clean.slice(0, charactersMax).toWellFormed()}${ellipsis}`;
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  const forms = secrets
    .filter((secret) => secret !== '')
    .flatMap((secret) => [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret.toWellFormed()),
      new URLSearchParams([['', secret]]).toString().slice(1),
    ]);
  // The longest first: replacing a shorter one inside it would leave the rest.
  const longestFirst = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return longestFirst.reduce((rest, form) => rest.replaceAll(form, ellipsis), text);
}

/** True for HTML, the answer of a proxy or of another site instead of the service. */
export function isWebPage(body: string): boolean {
  return body.trimStart().startsWith('<');
}

/**
 * Returns a hint from a body in an unknown format: the title of a web page, else the complete body. Truncate
 * it with `foreignText`, which needs the complete text to find secrets.
 */
export function hintOf(body: string): string {
  if (!isWebPage(body)) return body;
  const title = /<title[^<>]*>([^<]*)</i.exec(body.slice(0, 10_000))?.[1] ?? '';
  return `(a web page) ${title.replaceAll(/\s+/g, ' ')}`.trim();
}
