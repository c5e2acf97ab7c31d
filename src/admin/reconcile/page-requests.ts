/** Asks for one page until it comes: waits as it is told, tries again, logs in when it must. */
import { type AppError, isAppError } from '../../domain/app-error.ts';
import type { OutboundAnswer } from '../../http/outbound-client.ts';
import type { ListLogin } from './list-login.ts';
import type { ReadPage } from './listing-page.ts';
import type { PacedRequests } from './paced-requests.ts';
import { type Outcome, outcomeOf } from './page-outcome.ts';
import type { PageSize } from './page-size.ts';

/** How long things may take. */
export interface ListingTiming {
  /** One try, answer included. */
  attemptTimeoutMs: number;
  /** The wait after a first failure, before jitter; it doubles each time, up to the longest. */
  retryDelayMs: number;
  retryDelayMsMax: number;
  /** Failures in a row, after which a page is given up. */
  triesMax: number;
  /** The longest wait that the catalogue may ask for, and all such waits of one listing. */
  toldWaitMsMax: number;
  toldWaitsMsMax: number;
}

export const listingTiming: ListingTiming = {
  attemptTimeoutMs: 120_000,
  retryDelayMs: 1_000,
  retryDelayMsMax: 60_000,
  triesMax: 8,
  toldWaitMsMax: 600_000,
  toldWaitsMsMax: 1_800_000,
};

/** A try that brought no page; another one follows. */
export interface ListingTrouble {
  /** A sentence without its end, the same for the same cause: "The catalogue does not answer (ECONNREFUSED)". */
  cause: string;
  /** Until the next try. */
  waitMs: number;
  /** How long it is waited for further tries in all, at most; null where the catalogue says when to come back. */
  triesForMs: number | null;
}

/** The first token may be one that the catalogue no longer takes. */
const loginsMax = 2;

export interface PageQuestion {
  /** Completes "could not …": "list the created products". */
  purpose: string;
  /** `tries` is how often it failed before. */
  url: (top: number, tries: number) => string;
  read: (json: unknown) => ReadPage | { broken: string };
}

export interface PageRequests {
  /** Rejects as `ProductListing` does; with `invalid` when the catalogue refuses the question. */
  ask(question: PageQuestion, signal: AbortSignal): Promise<{ page: ReadPage; top: number }>;
}

/** What listings of one catalogue share. */
export interface PageRequestsOptions {
  requests: PacedRequests;
  size: PageSize;
  login: ListLogin;
  random: () => number;
  timing: ListingTiming;
  onTrouble?: ((trouble: ListingTrouble) => void) | undefined;
}

/** For one listing: the budget of waits is its own. */
export function createPageRequests(options: PageRequestsOptions): PageRequests {
  const { requests, size, login, random, timing, onTrouble } = options;
  let toldMs = 0;

  async function attempt(
    { purpose, read }: PageQuestion,
    url: string,
    signal: AbortSignal,
  ): Promise<Outcome & { status: number | null }> {
    const token = await login.token();
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
    let answer: OutboundAnswer;
    try {
      answer = await requests.send({ method: 'GET', url, headers, purpose }, signal);
    } catch (error) {
      if (isAppError(error, 'unavailable')) return { failed: error, status: null };
      throw error;
    }
    return { ...outcomeOf(answer, { purpose, url, read, token }), status: answer.status };
  }

  async function obey(
    { toldMs: ms, error, status }: { toldMs: number; error: AppError; status: number | null },
    signal: AbortSignal,
  ) {
    // Not exactly then, when others come back, too; and never at once.
    const waitMs = Math.max(ms, timing.retryDelayMs) + timing.retryDelayMs * random();
    toldMs += waitMs;
    if (ms > timing.toldWaitMsMax || toldMs > timing.toldWaitsMsMax) throw error;
    const cause = `The catalogue asks us to wait (${status})`;
    onTrouble?.({ cause, waitMs, triesForMs: null });
    await requests.wait(waitMs, signal);
  }

  async function ask(question: PageQuestion, signal: AbortSignal) {
    let failures = 0;
    let logins = 0;
    for (;;) {
      const top = size.current();
      const outcome = await attempt(question, question.url(top, failures), signal);
      if ('page' in outcome) {
        size.succeeded();
        return { page: outcome.page, top };
      }
      if ('toldMs' in outcome) {
        await obey(outcome, signal);
      } else if ('refusedStatus' in outcome) {
        logins += 1;
        if (logins > loginsMax) throw outcome.error;
        const { refusedStatus: status, said } = outcome;
        await login.demanded({ purpose: question.purpose, status, said });
      } else {
        failures += 1;
        if (outcome.failed.code === 'unavailable') size.failed();
        if (failures >= timing.triesMax) throw givenUp(failures, outcome.failed);
        const waitMs = longestDelayMs(failures, timing) * (0.5 + random() / 2);
        const cause = causeOf(outcome.failed, outcome.status);
        onTrouble?.({ cause, waitMs, triesForMs: triesForMs(failures, timing) });
        await requests.wait(waitMs, signal);
      }
    }
  }

  return { ask };
}

/** The wait after so many failures in a row, before jitter, which only makes it shorter. */
function longestDelayMs(failures: number, timing: ListingTiming): number {
  return Math.min(timing.retryDelayMs * 2 ** (failures - 1), timing.retryDelayMsMax);
}

/** All waits that are to come after so many failures in a row. */
function triesForMs(failures: number, timing: ListingTiming): number {
  const toCome = Array.from({ length: timing.triesMax - failures }, (_, i) => failures + i);
  return toCome.reduce((sum, failure) => sum + longestDelayMs(failure, timing), 0);
}

/** `status` is null where no answer came; the client's facts then say why. */
function causeOf({ facts: { reason, networkCode } }: AppError, status: number | null): string {
  if (status === 200) return "The catalogue's answer cannot be used";
  if (status !== null) return `The catalogue does not answer as it should (${status})`;
  if (typeof networkCode === 'string') return `The catalogue does not answer (${networkCode})`;
  return `The catalogue cannot be asked${reason === undefined ? '' : `: ${reason}`}`;
}

function givenUp(tries: number, error: AppError): AppError {
  const message = `${error.message} That was the last of ${tries} tries in a row.`;
  return error.with({ message });
}
