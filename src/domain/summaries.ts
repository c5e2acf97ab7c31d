/**
 * Summaries: texts about received products, the jobs that produce them, and what they cost.
 *
 * Terms: a *job* produces one text about one *subject*, a product or a digest. A *text* is stored under the hash of
 * the exact request that it answers (its *key*), so that the same request about the same subject is never sent twice.
 * The *template* is the plain text derived from the facts alone. Times are microseconds since 1970, UTC.
 */
import { formatDateUs, shortDateUs } from './dates.ts';
import { printable } from './text.ts';

/** Name of the reader of the log. */
export const summaryReader = 'summaries';

export const summaryKinds = ['product', 'digest'] as const;

export type SummaryKind = (typeof summaryKinds)[number];

/**
 * `waiting`: for its due time, its turn or the budget; `asking`: a request is in flight; `done`: with a text of the
 * model, or the template if no model is configured; `failed`: permanently; `dropped`: by a rule.
 */
export const summaryStates = ['waiting', 'asking', 'done', 'failed', 'dropped'] as const;

export type SummaryState = (typeof summaryStates)[number];

/**
 * Maximum wait of a job: a budget frees within 24 hours, the digest of a week is due a minute after its window, and a
 * request is in flight for minutes. A job due later was dated by a clock that ran ahead, and is due now.
 */
export const summaryWaitMaxUs = {
  product: 25 * 3_600_000_000,
  digest: 8 * 86_400_000_000,
  asking: 300_000_000,
} as const;

export const digestWindows = ['hour', 'day', 'week'] as const;

export type DigestWindow = (typeof digestWindows)[number];

/** Notifications covered by a digest. */
export interface DigestScope {
  /** Times of receipt: from (inclusive), until (exclusive). */
  fromUs: number;
  untilUs: number;
  /** Subscription name in the URL path; null for all subscriptions together, '' for notifications without a name. */
  subscription: string | null;
  /** Limits the digest to a collection, such as `SENTINEL-2`; null for all. */
  collection: string | null;
  /** Limits the digest to matches of this `$filter` expression; null for all. */
  filter: string | null;
  /** Name of the area, chosen by the user; null for none. */
  area: string | null;
}

/** Fields shared by a job and its row. */
interface SummarySubject {
  kind: SummaryKind;
  /** Null for a digest. */
  productId: string | null;
  productName: string | null;
  /** Subscription name in the URL path of the notification that caused the job. */
  subscription: string | null;
  /** Null for a product. */
  scope: DigestScope | null;
}

/** A requested job. It replaces and restarts an existing job of the subject. */
export interface NewSummaryJob extends SummarySubject {
  /** Identity of the job: the product id, or the scope of the digest as text. */
  subject: string;
  /**
   * Position that the product index must reach first: that of the notification that caused the job, or of the index
   * when a command found the product. Null for a digest, which depends on its window.
   */
  position: number | null;
  /** Earliest start; for a digest, the end of its window. */
  dueAtUs: number;
}

/** A job for the worker. */
export interface SummaryJob extends NewSummaryJob {
  id: number;
  /** Incremented whenever the subject is requested again, so that an old answer is not stored as the newer one. */
  revision: number;
  /** Failures caused by the job itself. */
  attempts: number;
  /** Kinds of unsupported statements in an answer; null while no answer had any. */
  doubted: readonly string[] | null;
  requestedAtUs: number;
}

/** A text, as stored for a request. */
export interface SummaryText {
  text: string;
  /** Null for the template. */
  model: string | null;
  /** True when all its statements were found in the facts; always true for the template. */
  verified: boolean;
  /** Statements not found in the facts, quoted from the text; empty when verified. */
  doubts: readonly string[];
  createdAtUs: number;
}

/** A job with its result, for output. */
export interface SummaryRow extends SummarySubject {
  id: number;
  state: SummaryState;
  /** The text, or the template, or null before the first attempt. An older text stays until there is a newer one. */
  text: SummaryText | null;
  attempts: number;
  requestedAtUs: number;
  /** Time of the next attempt; while `asking`, the end of the lease; null for a finished job. */
  nextAttemptAtUs: number | null;
  /** Why there is no text of the model, or not yet; null without an error. */
  error: string | null;
}

/** Begins the error of a job that waits for the budget. */
export const budgetSpent = 'The budget is used up:';

export interface SummaryQuery {
  kind?: SummaryKind | undefined;
  state?: SummaryState | undefined;
  productId?: string | undefined;
  /** Exact name. */
  subscription?: string | undefined;
  /** Verified texts only (true), or unverified ones only (false). */
  verified?: boolean | undefined;
  /** Time of the request: since (inclusive), until (exclusive). */
  sinceUs?: number | undefined;
  untilUs?: number | undefined;
  /** Only rows whose error begins with this text. */
  error?: string | undefined;
  /** Only ids below this one: the end of the previous page. Newest first. */
  beforeId?: number | undefined;
  limit?: number | undefined;
}

/** Limits set by the user, for any hour and any 24 hours. */
export interface SummaryBudget {
  requestsPerHour: number;
  requestsPerDay: number;
  tokensPerDay: number;
}

/** Unit of each limit, and the variable that sets it. */
export const budgetLimits = {
  requestsPerHour: { of: 'requests an hour', variable: 'EARSHOT_SUMMARY_REQUESTS_PER_HOUR' },
  requestsPerDay: { of: 'requests a day', variable: 'EARSHOT_SUMMARY_REQUESTS_PER_DAY' },
  tokensPerDay: { of: 'tokens a day', variable: 'EARSHOT_SUMMARY_TOKENS_PER_DAY' },
} as const satisfies Record<keyof SummaryBudget, { of: string; variable: string }>;

/** Spending of the last hour and the last 24 hours. A request counts from the time it is sent. */
export interface SummarySpending {
  requestsLastHour: number;
  requestsLastDay: number;
  tokensLastDay: number;
}

/**
 * Result of claiming a job before its request is sent. `claimed`: the request may be sent, and counts from now on.
 * `superseded`: another process has the job, or it is finished, or was requested again. `budget`: it must wait until
 * `freeAtUs` because of `limit`.
 */
export type SummaryClaim =
  | { outcome: 'claimed'; requestId: number }
  | { outcome: 'superseded' }
  | { outcome: 'budget'; limit: keyof SummaryBudget; freeAtUs: number };

/** Result of an attempt. If the job was requested again meanwhile, only the text and the tokens are recorded. */
export type SummaryOutcome =
  /** A new text, stored under its key. */
  | { outcome: 'text'; key: Uint8Array; text: SummaryText }
  /** The text already stored under the key. */
  | { outcome: 'known'; key: Uint8Array }
  /**
   * To be retried. `counts` increases the attempts; `doubted` reports unsupported statements in an answer. The
   * template is shown until there is a text of a model.
   */
  | {
      outcome: 'postponed';
      error: string;
      nextAttemptAtUs: number;
      counts: boolean;
      doubted?: readonly string[];
      template: string | null;
    }
  /** Final. The template, or that of an earlier attempt, replaces an older text. */
  | { outcome: 'failed' | 'dropped'; error: string; template: string | null }
  /** No longer requested: the job is removed. */
  | { outcome: 'withdrawn' };

/** Read access, which never waits for the intake. All calls reject with `unavailable`. */
export interface SummaryReader {
  /** Streams rows, newest first, page by page. */
  find(query: SummaryQuery): AsyncIterable<SummaryRow>;
  /** Returns texts by product id; products without a text are omitted. At most 1,000 ids. */
  textsOf(productIds: readonly string[]): Promise<Map<string, SummaryText>>;
  /**
   * Returns jobs that are due, waiting or with an expired lease: digests, then products, the longest due first; last,
   * those that would exceed `summaryWaitMaxUs`.
   */
  due(options: { nowUs: number; limit: number; ids?: readonly number[] }): Promise<SummaryJob[]>;
  /** Returns the time at which the next job becomes due, possibly in the past; null when none waits. */
  nextDueAtUs(): Promise<number | null>;
  /** Returns the text stored for exactly this request. */
  known(key: Uint8Array): Promise<SummaryText | null>;
  spending(nowUs: number): Promise<SummarySpending>;
  counts(): Promise<Record<SummaryState, number>>;
  /**
   * Returns the number of unfinished and of permanently failed jobs, without counting texts, which may be millions.
   */
  backlog(): Promise<{ waiting: number; failed: number }>;
}

/** Write access. Each call is one transaction, on disk when it resolves. All reject with `unavailable`. */
export interface Summaries extends SummaryReader {
  /**
   * Adds jobs and advances the reader's cursor with them. A subject that already has a job is requested again: the
   * job waits with no attempts and keeps its text; if a request is in flight, it waits for its end. If more than
   * `waitingMax` product jobs wait, the longest waiting ones are dropped with a reason. Resolves with the number
   * dropped.
   */
  enqueue(options: {
    jobs: readonly NewSummaryJob[];
    cursor?: { reader: string; position: number };
    waitingMax: number;
    atUs: number;
  }): Promise<{ ids: number[]; dropped: number }>;
  /**
   * Claims a job, at the given revision and within the budget, before a request is sent. A claim ends with `settle`,
   * or automatically at `leaseUntilUs`, when its process must have died. `tokens` is an estimate for question and
   * answer.
   */
  claim(options: {
    job: Pick<SummaryJob, 'id' | 'revision'>;
    model: string;
    tokens: number;
    budget: SummaryBudget;
    leaseUntilUs: number;
    nowUs: number;
  }): Promise<SummaryClaim>;
  /**
   * Records the result of a job. `request` identifies the claim it ends, with the tokens spent if the service
   * reported them.
   */
  settle(options: {
    job: Pick<SummaryJob, 'id' | 'revision'>;
    request: { id: number; tokens: number | null } | null;
    result: SummaryOutcome;
    nowUs: number;
  }): Promise<void>;
  /**
   * Requeues failed and dropped jobs: the given ones, or all. Also requeues given ones whose text is not verified:
   * the text is shown until there is another one, but `known` no longer returns it. Resolves with the number of jobs.
   */
  retry(options: { ids: readonly number[] | 'all'; nowUs: number }): Promise<number>;
  /** Drops waiting jobs, with a reason: the given ones, or all. Resolves with their number. */
  drop(options: { ids: readonly number[] | 'all' }): Promise<number>;
}

/** Collection of products whose name belongs to no known one. */
export const noCollection = 'OTHER';

/** Names a summary: product, or `digest of alps, 2026-11-19 00:00 to 2026-11-20 00:00 UTC, SENTINEL-2`. */
export function subjectName({
  productId,
  productName,
  subscription,
  scope,
}: Pick<SummarySubject, 'productId' | 'productName' | 'subscription' | 'scope'>): string {
  if (scope === null) return printable(productName ?? productId ?? '');
  const { fromUs, untilUs, area, collection, filter } = scope;
  const span = `${shortDateUs(fromUs)} to ${shortDateUs(untilUs)} UTC`;
  const source = (subscription ?? 'all subscriptions') || 'notifications without a subscription';
  // An area is the user's name for its filter.
  const filterText = filter === null ? null : `products that match ${filter}`;
  const collectionText = collection === noCollection ? 'unknown collection' : collection;
  const part = area ?? collectionText ?? filterText;
  return printable(`digest of ${source}, ${span}${part === null ? '' : `, ${part}`}`);
}

/** Fields of a row in every machine-readable format, in this order. */
export const summaryFields = [
  ...(['kind', 'productId', 'productName', 'text', 'model', 'verified', 'createdAt'] as const),
  ...(['error', 'id', 'state', 'subscription', 'doubts', 'attempts', 'requestedAt'] as const),
  ...(['nextTryAt', 'receivedFrom', 'receivedUntil', 'collection', 'area', 'filter'] as const),
] as const;

/** Converts a row to JSON: times as ISO 8601 UTC, absent values null. `model` is null for the template. */
export function toSummaryJson(row: SummaryRow) {
  const time = (us: number | null | undefined) => (us == null ? null : formatDateUs(us));
  const { text, scope } = row;
  return {
    kind: row.kind,
    productId: row.productId,
    productName: row.productName,
    text: text?.text ?? null,
    model: text?.model ?? null,
    verified: text?.verified ?? null,
    createdAt: time(text?.createdAtUs),
    error: row.error,
    id: row.id,
    state: row.state,
    subscription: row.subscription,
    doubts: [...(text?.doubts ?? [])],
    attempts: row.attempts,
    requestedAt: formatDateUs(row.requestedAtUs),
    nextTryAt: time(row.nextAttemptAtUs),
    receivedFrom: time(scope?.fromUs),
    receivedUntil: time(scope?.untilUs),
    collection: scope?.collection ?? null,
    area: scope?.area ?? null,
    filter: scope?.filter ?? null,
  } satisfies Record<(typeof summaryFields)[number], unknown>;
}

/** Converts the text of a product to JSON. */
export function toTextJson({ text, model, verified, createdAtUs }: SummaryText) {
  return { text, model, verified, createdAt: formatDateUs(createdAtUs) };
}

export const summaryRuleKinds = ['off', 'each', 'digest'] as const;

export type SummaryRuleKind = (typeof summaryRuleKinds)[number];

/** A named part of the notifications. */
export interface SummaryArea {
  /** 1 to 60 printable characters. */
  name: string;
  /** A `$filter` expression of `Products`; blank for every product. */
  filter: string;
}

export type SummaryRule =
  | { kind: 'off' }
  /** A text per product that matches the filter; blank for every product. */
  | { kind: 'each'; filter: string }
  /** A text per window: for all products, for each collection, or for each area, if any are set. */
  | {
      kind: 'digest';
      window: DigestWindow;
      per: 'all' | 'collection';
      areas: readonly SummaryArea[];
    };

/** Returns the default rule of a kind: every product, or one digest of everything per day. */
export function plainSummaryRule(kind: SummaryRuleKind): SummaryRule {
  if (kind === 'each') return { kind, filter: '' };
  if (kind === 'digest') return { kind, window: 'day', per: 'all', areas: [] };
  return { kind };
}

/** Returns true when no rule requests a text. */
export function areAllOff(rules: Iterable<SummaryRule>): boolean {
  return [...rules].every(({ kind }) => kind === 'off');
}
