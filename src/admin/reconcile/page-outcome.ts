/** What an answer to a question for a page means: the page, to try again, to wait, or to log in. */
import { AppError } from '../../domain/app-error.ts';
import { foreignText, hintCharactersMax, hintOf } from '../../http/foreign-text.ts';
import { type OutboundAnswer, retryAfterMs } from '../../http/outbound-client.ts';
import { readServiceWords, type ServiceWords, serviceError } from '../service/service-error.ts';
import type { ReadPage } from './listing-page.ts';

/** What came of one try. */
export type Outcome =
  | { page: ReadPage }
  | { failed: AppError }
  /** The catalogue says how long to wait; the error is for when that is too long. */
  | { toldMs: number; error: AppError }
  /** It wants another token, or one at all; `said` is for the end of an error, with its words. */
  | { refusedStatus: number; said: string; error: AppError };

interface AskedQuestion {
  purpose: string;
  url: string;
  read: (json: unknown) => ReadPage | { broken: string };
  token: string | null;
}

/** From about here on firewalls have their limits; servers take more, and answer otherwise than with 403. */
const longAddressCharacters = 2_000;

/**
 * Throws what a repetition would not change, or make worse: `invalid`, `unavailable` for a redirect and for a
 * firewall that keeps us out, and `unauthorized` where the account is not allowed to.
 */
export function outcomeOf(answer: OutboundAnswer, question: AskedQuestion): Outcome {
  const { purpose, read, token } = question;
  const { status } = answer;
  const secrets = token === null ? [] : [token];
  if (status === 200) {
    const page = read(answer.json);
    return 'broken' in page ? { failed: brokenPage(answer, page.broken, question) } : { page };
  }
  const words = readServiceWords(answer, secrets);
  if (status === 403 && !isOwnRefusal(answer)) throw refusedOnTheWay(question, words);
  if (status === 403 && token !== null) throw notAllowed(question, words);
  if (status === 401 || status === 403) {
    const error = serviceError(answer, words, purpose, 'unauthorized');
    return { refusedStatus: status, said: saidBy(words), error };
  }
  const error = serviceError(answer, words, purpose);
  const toldMs = status === 429 || status === 503 ? retryAfterMs(answer.headers) : null;
  if (toldMs !== null) return { toldMs, error };
  if (status === 408 || status === 429 || status >= 500 || status < 300) return { failed: error };
  throw error;
}

/** Whether the catalogue itself refuses: all its refusals have a `detail` (facts, catalogue 1.4). */
function isOwnRefusal({ json }: OutboundAnswer): boolean {
  return typeof json === 'object' && json !== null && 'detail' in json;
}

/** No login changes that. `invalid` where the address is long: the same question without the filter may pass. */
function refusedOnTheWay({ purpose, url }: AskedQuestion, words: ServiceWords): AppError {
  const isLong = url.length > longAddressCharacters;
  const [why, advice] = isLong
    ? [
        `the address has ${url.length.toLocaleString('en-US')} characters, which some do not let through.`,
        'Give the subscription a shorter filter, such as a polygon of fewer corners.',
      ]
    : [
        'it may keep this host out for a while.',
        'Try again later, or check EARSHOT_CATALOGUE_URL and what stands between.',
      ];
  return new AppError(
    isLong ? 'invalid' : 'unavailable',
    `Could not ${purpose}: the answer ${factsOf(words)} is not one of the catalogue's own, but of a firewall or proxy before it: ${why}`,
    { advice: `${advice}${saidBy(words)}` },
  );
}

/** A token that is over is answered with 401 (RFC 9110, 15.5.4): this one was understood. */
function notAllowed({ purpose }: AskedQuestion, words: ServiceWords): AppError {
  return new AppError(
    'unauthorized',
    `The catalogue refused to ${purpose} though it was told who asks ${factsOf(words)}: the account may not.`,
    {
      advice: `Log in on its web site, where something may have to be agreed to, or ask its support.${saidBy(words)}`,
    },
  );
}

function factsOf({ requestId }: ServiceWords): string {
  return requestId === null ? '(403)' : `(403, request id ${requestId})`;
}

function saidBy({ text, lines }: ServiceWords): string {
  const said = text ?? lines.join('; ');
  return said === '' ? '' : ` It says: ${said}`;
}

function brokenPage(
  { json, text }: OutboundAnswer,
  why: string,
  { purpose, token }: AskedQuestion,
): AppError {
  const options = { secrets: token === null ? [] : [token], charactersMax: hintCharactersMax };
  const begins = json === undefined ? ` It begins: ${foreignText(hintOf(text), options)}` : '';
  return new AppError(
    'unavailable',
    `Could not ${purpose}: the catalogue's answer cannot be used, as ${why}.`,
    { advice: `Try again later, or check EARSHOT_CATALOGUE_URL.${begins}` },
  );
}
