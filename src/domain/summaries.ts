/**
 * What earshot says in words about what arrived: texts, the jobs that ask for them, and what was spent.
 *
 * Words: a *job* wants one text about one *subject*, a product or a digest. A *text* is kept under the digest
 * of the exact request it answered (its *key*), so that the same request about the same subject is never sent
 * twice. The *template* is the plain text made from the facts alone. Times are microseconds since 1970, UTC.
 */
import { formatDateUs } from './dates.ts';

/** The name of the cursor with which the log is read. */
export const summaryReader = 'summaries';

export const summaryKinds = ['product', 'digest'] as const;

export type SummaryKind = (typeof summaryKinds)[number];

/**
 * `waiting` for its time, its turn or the budget; `asking` while a request is out; `done` with a text of the
 * model, or with the template where no model is configured; `failed` for good; `dropped` by a rule.
 */
export const summaryStates = ['waiting', 'asking', 'done', 'failed', 'dropped'] as const;

export type SummaryState = (typeof summaryStates)[number];

/**
 * No job waits longer than this for its time: a budget frees within 24 hours, a week's digest is due a minute
 * after its window, and a request is out for some minutes. What is due later was dated by a clock that ran
 * ahead, and is due now.
 */
export const summaryWaitMaxUs = {
  product: 25 * 3_600_000_000,
  digest: 8 * 86_400_000_000,
  asking: 300_000_000,
} as const;

export const digestWindows = ['hour', 'day', 'week'] as const;

export type DigestWindow = (typeof digestWindows)[number];

/** Which notifications a digest tells of. */
export interface DigestScope {
  /** Times of receipt: from (included), until (excluded). */
  fromUs: number;
  untilUs: number;
  /** The name in the path; null for all subscriptions together, '' for notifications to no name. */
  subscription: string | null;
  /** Only this collection, such as `SENTINEL-2`; null for all. */
  collection: string | null;
  /** Only what matches this `$filter` text; null for all. */
  filter: string | null;
  /** What the filter stands for, in the user's own word; null where it has none. */
  area: string | null;
}

/** What a job and its row have in common. */
interface SummarySubject {
  kind: SummaryKind;
  /** Null for a digest. */
  productId: string | null;
  productName: string | null;
  /** The name in the path of the notification that called for it. */
  subscription: string | null;
  /** Null for a product. */
  scope: DigestScope | null;
}

/** What is wanted. A job that exists for the subject becomes this one, and begins anew. */
export interface NewSummaryJob extends SummarySubject {
  /** What makes two jobs the same one: for a product its id, for a digest its whole scope in a text. */
  subject: string;
  /**
   * How far the product index must have got to tell of it: to the notification that called for it, or to where
   * it was when a command found the product. Null for a digest, whose window says it.
   */
  position: number | null;
  /** Not before: for a digest, when its window is over. */
  dueAtUs: number;
}

/** A job as the worker sees it. */
export interface SummaryJob extends NewSummaryJob {
  id: number;
  /** Grows whenever the subject is wanted anew, so that a late answer cannot pass for a newer one. */
  revision: number;
  /** Failures that were the job's own. */
  attempts: number;
  /** What kinds of statements of an answer were not in the facts; null when no answer was doubted so far. */
  doubted: readonly string[] | null;
  requestedAtUs: number;
}

/** A text that answers a request. */
export interface SummaryText {
  text: string;
  /** Null for a template. */
  model: string | null;
  /** Whether all that it states was found in the facts; a template always is. */
  verified: boolean;
  /** What was not found, as it stands in the text; empty when verified. */
  doubts: readonly string[];
  createdAtUs: number;
}

/** A job with what came of it, for people and programs. */
export interface SummaryRow extends SummarySubject {
  id: number;
  state: SummaryState;
  /** The text, else the template, else null while it has not been looked at; an older one until there is a newer. */
  text: SummaryText | null;
  attempts: number;
  requestedAtUs: number;
  /** When it is tried next; while it is asked, when its lease ends; null for one that is over. */
  nextAttemptAtUs: number | null;
  /** Why there is no text of the model, or not yet; null when nothing went wrong. */
  error: string | null;
}

export interface SummaryQuery {
  kind?: SummaryKind | undefined;
  state?: SummaryState | undefined;
  productId?: string | undefined;
  /** Exact. */
  subscription?: string | undefined;
  /** Of texts: true for verified ones only, false for the others. */
  verified?: boolean | undefined;
  /** Jobs wanted since (included), until (excluded). */
  sinceUs?: number | undefined;
  untilUs?: number | undefined;
  /** Newest first; only ids below this one: where the page before ended. */
  beforeId?: number | undefined;
  limit?: number | undefined;
}

/** What the user allows, in any hour and any 24 hours. */
export interface SummaryBudget {
  requestsPerHour: number;
  requestsPerDay: number;
  tokensPerDay: number;
}

/** What each limit counts, in words, and the variable that sets it. */
export const budgetLimits = {
  requestsPerHour: { of: 'requests an hour', variable: 'EARSHOT_SUMMARY_REQUESTS_PER_HOUR' },
  requestsPerDay: { of: 'requests a day', variable: 'EARSHOT_SUMMARY_REQUESTS_PER_DAY' },
  tokensPerDay: { of: 'tokens a day', variable: 'EARSHOT_SUMMARY_TOKENS_PER_DAY' },
} as const satisfies Record<keyof SummaryBudget, { of: string; variable: string }>;

/** What was spent in the last hour and the last 24. Requests count from when they are sent. */
export interface SummarySpending {
  requestsLastHour: number;
  requestsLastDay: number;
  tokensLastDay: number;
}

/**
 * What came of asking to send a request. `claimed`: it may be sent, and is counted from now on. `taken`: the
 * job is another's, done, or wanted anew. `budget`: it must wait until `freeAtUs`; `limit` names which.
 */
export type SummaryClaim =
  | { outcome: 'claimed'; requestId: number }
  | { outcome: 'superseded' }
  | { outcome: 'budget'; limit: keyof SummaryBudget; freeAtUs: number };

/** How a job goes on. Ignored but for the text and the tokens when the job was wanted anew meanwhile. */
export type SummaryOutcome =
  /** A new text, kept under its key. */
  | { outcome: 'text'; key: Uint8Array; text: SummaryText }
  /** The text that is kept under the key already. */
  | { outcome: 'known'; key: Uint8Array }
  /**
   * To be tried again; `counts` adds to the attempts, and `doubted` says that an answer was doubted. Where no
   * text of a model is there, the template is shown until then.
   */
  | {
      outcome: 'postponed';
      error: string;
      nextAttemptAtUs: number;
      counts: boolean;
      doubted?: readonly string[];
      template: string | null;
    }
  /** Over. The template, or the one of an earlier try, takes the place of an older text. */
  | { outcome: 'failed' | 'dropped'; error: string; template: string | null }
  /** The subject is not to be told of after all: the job is forgotten. */
  | { outcome: 'withdrawn' };

/** The questions, which never wait for intake. All reject with `unavailable`. */
export interface SummaryReader {
  /** Streams rows, newest first, page by page. */
  find(query: SummaryQuery): AsyncIterable<SummaryRow>;
  /** The texts of products, by product id; those without one are left out. At most 1,000 ids. */
  textsOf(productIds: readonly string[]): Promise<Map<string, SummaryText>>;
  /**
   * Jobs that are due: waiting ones, and those whose lease has run out; digests, then products, the longest due
   * first; at last those that would wait longer than `summaryWaitMaxUs`.
   */
  due(options: { nowUs: number; limit: number; ids?: readonly number[] }): Promise<SummaryJob[]>;
  /** When the next job becomes due; null when none waits. May lie in the past. */
  nextDueAtUs(): Promise<number | null>;
  /** The text that answered exactly this request. */
  known(key: Uint8Array): Promise<SummaryText | null>;
  spending(nowUs: number): Promise<SummarySpending>;
  counts(): Promise<Record<SummaryState, number>>;
  /** Jobs that are not over, and those that failed for good: without counting texts, which may be millions. */
  backlog(): Promise<{ waiting: number; failed: number }>;
}

/** The changes: each is one transaction, on disk when it resolves. All reject with `unavailable`. */
export interface Summaries extends SummaryReader {
  /**
   * Adds jobs, and moves the reader's cursor with them. A subject that has a job already is wanted anew: it
   * waits again, without attempts, and keeps its text; where a request is out, it waits for its end. When more than `waitingMax` product
   * jobs wait, the longest waiting ones are dropped, with the reason; resolves with how many.
   */
  enqueue(options: {
    jobs: readonly NewSummaryJob[];
    cursor?: { reader: string; position: number };
    waitingMax: number;
    atUs: number;
  }): Promise<{ ids: number[]; dropped: number }>;
  /**
   * Asks to send a request for a job as it was seen, within the budget. A claim ends with `settle`, or by
   * itself at `leaseUntilUs`, when its holder must have died. `tokens` is an estimate of question and answer.
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
   * Says what came of a job; `request` names the claim it ends, with the tokens that were really spent where
   * the service told.
   */
  settle(options: {
    job: Pick<SummaryJob, 'id' | 'revision'>;
    request: { id: number; tokens: number | null } | null;
    result: SummaryOutcome;
    nowUs: number;
  }): Promise<void>;
  /**
   * Sets failed and dropped jobs to wait again: those named, or all. Also those named whose text is not
   * verified: it is shown until there is another one, but `known` no longer has it. Resolves with how many.
   */
  retry(options: { ids: readonly number[] | 'all'; nowUs: number }): Promise<number>;
  /** Drops waiting jobs, with the reason: those named, or all. Resolves with how many. */
  drop(options: { ids: readonly number[] | 'all' }): Promise<number>;
}

/** The fields of a row in every machine-readable form, in this order. */
export const summaryFields = [
  ...(['kind', 'productId', 'productName', 'text', 'model', 'verified', 'createdAt'] as const),
  ...(['error', 'id', 'state', 'subscription', 'doubts', 'attempts', 'requestedAt'] as const),
  ...(['nextTryAt', 'receivedFrom', 'receivedUntil', 'collection', 'area', 'filter'] as const),
] as const;

/** Times ISO 8601 UTC; what is not there is null. `model` null: the text is made of the facts alone. */
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

/** A text as it stands beside a product. */
export function toTextJson({ text, model, verified, createdAtUs }: SummaryText) {
  return { text, model, verified, createdAt: formatDateUs(createdAtUs) };
}

export const summaryRuleKinds = ['off', 'each', 'digest'] as const;

export type SummaryRuleKind = (typeof summaryRuleKinds)[number];

/** A part of what arrives, by the user's own word for it. */
export interface SummaryArea {
  /** 1 to 60 printable characters. */
  name: string;
  /** A `$filter` expression of `Products`; blank for every product. */
  filter: string;
}

export type SummaryRule =
  | { kind: 'off' }
  /** One text per product that matches the filter; blank for every product. */
  | { kind: 'each'; filter: string }
  /** One text per window: for all, for each collection, or, where there are any, for each area. */
  | {
      kind: 'digest';
      window: DigestWindow;
      per: 'all' | 'collection';
      areas: readonly SummaryArea[];
    };

/** A rule that says nothing but its kind: each product, and one digest of all a day. */
export function plainSummaryRule(kind: SummaryRuleKind): SummaryRule {
  if (kind === 'each') return { kind, filter: '' };
  if (kind === 'digest') return { kind, window: 'day', per: 'all', areas: [] };
  return { kind };
}

/** Whether none of them asks for a text. */
export function areAllOff(rules: Iterable<SummaryRule>): boolean {
  return [...rules].every(({ kind }) => kind === 'off');
}
