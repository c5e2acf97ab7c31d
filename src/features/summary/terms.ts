/**
 * Summaries: short texts about received products, and about the products of a period (digests). A *job* produces one
 * text about one *subject*. Its sentences come from a language model or the template; all values in it are facts of the
 * subject. Times are microseconds since 1970, UTC.
 */
import type { z } from 'zod';
import { shortDateUs } from '../../core/terms/dates.ts';
import type { SummaryKind, SummaryState } from '../../core/terms/ports.ts';
import type { summaryTextSchema } from '../../core/terms/read-models.ts';
import { lengthText, printable } from '../../core/terms/text.ts';

/** Name of the reader of the log. */
export const summaryReader = 'summaries';

export const digestWindows = ['hour', 'day', 'week'] as const;

export type DigestWindow = (typeof digestWindows)[number];

/** Products of a digest. */
export interface DigestScope {
  /** Times of the first receipt: from (inclusive), until (exclusive). */
  fromUs: number;
  untilUs: number;
  /** Null for all. */
  subscription: string | null;
  /** `$filter` expression; null for all. */
  filter: string | null;
  /** Maximum time from sensing to publication; absent for any. */
  maxAgeUs?: number | undefined;
}

/** A requested job. It replaces an existing job of the subject. */
export interface NewSummaryJob {
  kind: SummaryKind;
  /** Identity: the product id in lower case, or the scope of the digest as text. */
  subject: string;
  /** Null for a digest. */
  productId: string | null;
  productName: string | null;
  /** Name in the URL path of the notification that caused the job. */
  subscription: string | null;
  /** Null for a product. */
  scope: DigestScope | null;
  /** Position of the newest notification so far. */
  position: number;
  /** Earliest start. */
  dueAtUs: number;
}

/** A job for the worker. */
export interface SummaryJob extends NewSummaryJob {
  id: number;
  /** Changes whenever the subject is requested again, so that an old answer does not complete the newer job. */
  revision: number;
  requestedAtUs: number;
  /** Hash of the request that the text of a model answers; null without such a text. */
  request: Uint8Array | null;
}

/** Text of a product or digest, plain: escape it in markup. */
export type SummaryText = z.infer<typeof summaryTextSchema>;

/** A job with its result, for output. */
export interface SummaryRow extends Omit<NewSummaryJob, 'dueAtUs' | 'position'> {
  id: number;
  state: SummaryState;
  requestedAtUs: number;
  /** Next attempt; null when it is done. */
  dueAtUs: number | null;
  /** An older text stays until there is a newer one. Null before the first attempt. */
  text: SummaryText | null;
  /** Why the summary waits, or why the text is not from the model; null without a reason. */
  reason: string | null;
}

export interface SummaryQuery {
  kind?: SummaryKind | undefined;
  state?: SummaryState | undefined;
  ids?: readonly number[] | undefined;
  productId?: string | undefined;
  subscription?: string | undefined;
  /** Time of the request: since (inclusive), until (exclusive). */
  sinceUs?: number | undefined;
  untilUs?: number | undefined;
  /** Only ids below this one: the end of the previous page. */
  beforeId?: number | undefined;
  limit?: number | undefined;
}

/** Limits for any 24 hours, set by the user. */
export interface SummaryBudget {
  requestsPerDay: number;
  tokensPerDay: number;
}

/** Requests of the last 24 hours, counted from the time they are sent. */
export interface SummarySpending {
  requests: number;
  tokens: number;
  /** Time of the first one; null without one. */
  sinceUs: number | null;
}

/** A request that ended, with its reported tokens minus the estimate; 0 if none were reported. */
export interface EndedRequest {
  id: number;
  tokensAbove: number;
}

/** Result of an attempt; recorded unless the subject was requested again meanwhile. */
export type SummaryOutcome =
  | {
      outcome: 'done';
      text: SummaryText;
      request: Uint8Array | null;
      reason: string | null;
    }
  /** The present text stays. */
  | { outcome: 'same' }
  /**
   * A text, if given, is shown until the next attempt succeeds. For the budget or the service, all later jobs wait, too;
   * for a fault of earshot, only this one.
   */
  | {
      outcome: 'postponed';
      by: 'budget' | 'service' | 'fault';
      dueAtUs: number;
      reason: string;
      text: SummaryText | null;
    }
  /** There is nothing to summarize: the job is removed. */
  | { outcome: 'withdrawn' };

/** Read access. All calls reject with `unavailable`. */
export interface SummaryReader {
  /** Streams rows, newest first, page by page. */
  find(query: SummaryQuery): AsyncIterable<SummaryRow>;
  /** Returns texts by product id; products without a text are omitted. */
  textsOf(productIds: readonly string[]): Promise<Map<string, SummaryText>>;
  /** Returns due jobs: digests that end until `digestsUntilUs`, then products, the longest due first. */
  due(options: {
    nowUs: number;
    digestsUntilUs: number;
    limit: number;
    ids?: readonly number[] | undefined;
  }): Promise<SummaryJob[]>;
  /** Counts unfinished jobs. `dueAtUs` is the time of the first one, possibly in the past; null without one. */
  waiting(): Promise<{ waiting: number; dueAtUs: number | null }>;
  spending(nowUs: number): Promise<SummarySpending>;
  /** Returns the reason of the last text if the answers for the last three texts were refused; otherwise null. */
  refusedAnswer(): Promise<string | null>;
}

/** Write access. Each call is one transaction, on disk when it resolves. All reject with `unavailable`. */
export interface Summaries extends SummaryReader {
  /**
   * Adds jobs and advances the reader's cursor with them. A subject that has a job is requested again, and keeps its
   * text. Ends the longest waiting product jobs above `waitingMax`, with a reason; resolves with their number.
   */
  enqueue(options: {
    jobs: readonly NewSummaryJob[];
    cursor?: { reader: string; position: number };
    waitingMax: number;
    atUs: number;
  }): Promise<{ ids: number[]; dropped: number }>;
  /** Records a request before it is sent, with an estimate of its tokens. Resolves with its id. */
  beginRequest(options: { atUs: number; tokens: number }): Promise<number>;
  /** Saves the result of an attempt, and corrects the tokens of its requests. */
  settle(options: {
    job: Pick<SummaryJob, 'id' | 'revision'>;
    result: SummaryOutcome;
    requests?: readonly EndedRequest[];
  }): Promise<void>;
}

/** Names a summary: product, or `digest of alps, 2026-11-19 00:00 to 2026-11-20 00:00 UTC`. */
export function subjectName({
  productId,
  productName,
  scope,
}: Pick<SummaryRow, 'productId' | 'productName' | 'scope'>): string {
  if (scope === null) return printable(productName ?? productId ?? '');
  const { fromUs, untilUs, subscription, filter, maxAgeUs } = scope;
  const span = `${shortDateUs(fromUs)} to ${shortDateUs(untilUs)} UTC`;
  const part = filter === null ? '' : `, products that match ${filter}`;
  const age = maxAgeUs === undefined ? '' : `, published within ${lengthText(maxAgeUs)} of sensing`;
  return printable(`digest of ${subscription ?? 'all subscriptions'}, ${span}${part}${age}`);
}

export const summaryRuleKinds = ['off', 'each', 'digest'] as const;

export type SummaryRuleKind = (typeof summaryRuleKinds)[number];

/** Which texts a subscription gets: none, one per product, or one per period. The filter limits the products. */
export interface SummaryRule {
  kind: SummaryRuleKind;
  /** Blank for every product. */
  filter: string;
  /** Maximum time from sensing to publication; absent for any. */
  maxAgeUs?: number | undefined;
  /** Period of a digest. */
  window: DigestWindow;
}

/** Returns the default rule of a kind: every product, or one digest of everything per day. */
export function plainSummaryRule(kind: SummaryRuleKind): SummaryRule {
  return { kind, filter: '', window: 'day' };
}

/** Returns true when no rule requests a text. */
export function areAllOff(rules: Iterable<SummaryRule>): boolean {
  return [...rules].every(({ kind }) => kind === 'off');
}
