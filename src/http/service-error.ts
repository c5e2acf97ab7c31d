/** What the catalogue says when it refuses: its words, unchanged, and what follows from them. */
import { z } from 'zod';
import { AppError, type ErrorCode } from '../domain/app-error.ts';
import { retryAfterMs } from './bounded-fetch.ts';
import { foreignText, hintCharactersMax, hintOf } from './foreign-text.ts';
import type { OutboundAnswer } from './outbound-client.ts';

/** An answer of the service in words. */
export interface ServiceMessage {
  /** Null when there are none, or only a list. */
  text: string | null;
  /** One finding each, as `query.$top: Input should be …`. */
  lines: readonly string[];
  requestId: string | null;
}

const wordsCharactersMax = 4_000;

const linesMax = 20;

/** The three forms of `detail` (facts, catalogue 1.4). */
const errorBody = z.object({
  detail: z.union([
    z.string(),
    z.object({ message: z.string(), request_id: z.string().nullish().catch(null) }),
    // `input` stays unread: it repeats what we sent, the endpoint's password included.
    z.array(
      z
        .union([
          z.string(),
          z.object({ loc: z.array(z.union([z.string(), z.number()])).catch([]), msg: z.string() }),
        ])
        .catch('(a finding without words)'),
    ),
  ]),
});

/** Reads the words of an answer; what is in `secrets` shows as `…` should the service repeat it. */
export function readServiceMessage(
  answer: OutboundAnswer,
  secrets: readonly string[],
): ServiceMessage {
  const safe = (text: string, charactersMax = wordsCharactersMax) =>
    foreignText(text, { secrets, charactersMax });
  const parsed = errorBody.safeParse(answer.json);
  const detail = parsed.data?.detail ?? null;
  const inBody =
    typeof detail === 'object' && detail !== null && 'message' in detail ? detail : null;
  const id = answer.headers.get('request-id') ?? inBody?.request_id ?? '';
  const requestId = safe(id, 100) || null;
  if (Array.isArray(detail)) {
    const lines = detail.map((item) => safe(typeof item === 'string' ? item : lineOf(item)));
    const rest = lines.length > linesMax ? [`… and ${lines.length - linesMax} more`] : [];
    return { text: null, lines: [...lines.slice(0, linesMax), ...rest], requestId };
  }
  const text = typeof detail === 'string' ? detail : inBody?.message;
  const words = text === undefined ? safe(hintOf(answer.text), hintCharactersMax) : safe(text);
  return { text: words || null, lines: [], requestId };
}

/**
 * An error for an answer that is no success. `purpose` says what was asked for, in words that
 * complete "refused to …".
 */
export function serviceError(
  answer: OutboundAnswer,
  words: ServiceMessage,
  purpose: string,
  code: ErrorCode = codeOf(answer.status),
): AppError {
  const id = words.requestId === null ? '' : `, request id ${words.requestId}`;
  const said =
    words.lines.length > 0 ? 'It says:' : words.text === null ? null : `It says: ${words.text}`;
  const [message, ...next] = sentencesOf(code, answer, purpose, `(${answer.status}${id})`);
  const advice = [...next, ...(said === null ? [] : [said])].join(' ') || undefined;
  return new AppError(code, message, { advice, details: words.lines });
}

function codeOf(status: number): ErrorCode {
  if (status === 401) return 'unauthorized';
  if (status === 409) return 'conflict';
  if (status === 429) return 'too_many';
  return status >= 400 && status < 500 && status !== 408 ? 'invalid' : 'unavailable';
}

/** What happened and what to do; `facts` are the status and the request id. */
function sentencesOf(
  code: ErrorCode,
  { status, headers }: OutboundAnswer,
  purpose: string,
  facts: string,
): [message: string, advice?: string] {
  switch (code) {
    case 'unauthorized':
      return [
        `The catalogue does not accept the access token, so it refused to ${purpose} ${facts}.`,
      ];
    case 'not_found':
      return [
        `The catalogue has no such subscription, so it could not ${purpose} ${facts}.`,
        'List what is there.',
      ];
    case 'conflict':
      return [
        `The catalogue refused to ${purpose}, as that conflicts with what is there ${facts}.`,
      ];
    case 'too_many': {
      const waitMs = retryAfterMs(headers);
      const when = waitMs === null ? 'later' : `in ${Math.ceil(waitMs / 1000)} seconds`;
      return [
        `The catalogue refused to ${purpose}, as it was asked too often ${facts}.`,
        `Try again ${when}.`,
      ];
    }
    case 'unavailable':
      return status >= 300 && status < 400
        ? [
            `The catalogue did not ${purpose} but points to ${placeOf(headers)} ${facts}.`,
            'earshot does not follow, as the access token must not travel. Check EARSHOT_CATALOGUE_URL.',
          ]
        : [`The catalogue could not ${purpose} at the moment ${facts}.`, 'Try again later.'];
    default:
      return status === 404 || status === 405
        ? [`The catalogue refused to ${purpose} ${facts}.`, 'Check EARSHOT_CATALOGUE_URL.']
        : [`The catalogue refused to ${purpose} ${facts}.`];
  }
}

/** Only the origin: the rest of the address may hold anything. */
function placeOf(headers: Headers): string {
  const origin = URL.parse(headers.get('location') ?? '')?.origin ?? 'null';
  return origin === 'null' ? 'another address' : origin;
}

function lineOf({ loc, msg }: { loc: readonly (string | number)[]; msg: string }): string {
  return loc.length === 0 ? msg : `${loc.join('.')}: ${msg}`;
}
