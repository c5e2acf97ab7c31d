/** What an answer to a question for a page means: the page, to try again, to wait, or to log in. */
import { AppError } from '../../domain/app-error.ts';
import { foreignText, hintCharactersMax, hintOf } from '../../http/foreign-text.ts';
import { type OutboundAnswer, retryAfterMs } from '../../http/outbound-client.ts';
import { readServiceWords, serviceError } from '../service/service-error.ts';
import type { ReadPage } from './listing-page.ts';

/** What came of one try. */
export type Outcome =
  | { page: ReadPage }
  | { failed: AppError }
  /** The catalogue says how long to wait; the error is for when that is too long. */
  | { toldMs: number; error: AppError }
  /** It wants another token, or one at all. */
  | { refusedStatus: number; error: AppError };

/** Throws what a repetition would not change: `invalid`, and `unavailable` for a redirect. */
export function outcomeOf(
  answer: OutboundAnswer,
  question: {
    purpose: string;
    read: (json: unknown) => ReadPage | { broken: string };
    token: string | null;
  },
): Outcome {
  const { purpose, read, token } = question;
  const { status } = answer;
  const secrets = token === null ? [] : [token];
  if (status === 200) {
    const page = read(answer.json);
    return 'broken' in page ? { failed: brokenPage(answer, page.broken, question) } : { page };
  }
  const words = readServiceWords(answer, secrets);
  if (status === 401 || status === 403) {
    const error = serviceError(answer, words, purpose, 'unauthorized');
    return { refusedStatus: status, error };
  }
  const error = serviceError(answer, words, purpose);
  const toldMs = status === 429 || status === 503 ? retryAfterMs(answer.headers) : null;
  if (toldMs !== null) return { toldMs, error };
  if (status === 408 || status === 429 || status >= 500 || status < 300) return { failed: error };
  throw error;
}

function brokenPage(
  { json, text }: OutboundAnswer,
  why: string,
  { purpose, token }: { purpose: string; token: string | null },
): AppError {
  const options = { secrets: token === null ? [] : [token], charactersMax: hintCharactersMax };
  const begins = json === undefined ? ` It begins: ${foreignText(hintOf(text), options)}` : '';
  return new AppError(
    'unavailable',
    `Could not ${purpose}: the catalogue's answer cannot be used, as ${why}. Try again later, or check EARSHOT_CATALOGUE_URL.${begins}`,
  );
}
