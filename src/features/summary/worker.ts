/** Writes summaries: from the facts of a subject to a text, one request at a time. */
import { hash } from 'node:crypto';
import { pause } from '../../core/cli/io.ts';
import { type Job, jittered, startJob } from '../../core/host/job.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import { dayUs, formatDateUs } from '../../core/terms/dates.ts';
import {
  type CheckedAnswer,
  chatRequest,
  checkAnswer,
  estimateTokens,
  type Facts,
  repeatedRequest,
} from './answer.ts';
import { type ChatRequest, type InferenceFacts, inferenceFacts } from './chat-client.ts';
import { digestFacts, digestTemplate } from './digest.ts';
import { productFacts, productTemplate } from './facts.ts';
import {
  collectJobs,
  findProduct,
  isIndexed,
  type RuleOf,
  type SummaryContext,
  type SummaryModel,
  summaryWithinUs,
} from './jobs.ts';
import {
  type EndedRequest,
  type NewSummaryJob,
  type SummaryJob,
  type SummaryOutcome,
  summaryReader,
} from './terms.ts';

/** The job and all later ones wait. */
export type Blocked = Extract<SummaryOutcome, { outcome: 'postponed' }>;

export const isBlocked = (result: SummaryOutcome): result is Blocked =>
  result.outcome === 'postponed' && result.by !== 'fault';

/** Returns the facts of a subject; null if there is nothing to summarize. */
export async function factsOf(
  job: Pick<NewSummaryJob, 'productId' | 'scope'>,
  context: Pick<SummaryContext, 'products' | 'places'>,
  signal: AbortSignal,
): Promise<Facts | null> {
  if (job.scope !== null) return digestFacts(job.scope, context, signal);
  const entities = ['Products', 'DeletedProducts'] as const;
  const { productId } = job;
  const found =
    productId === null ? null : await findProduct(context.products, entities, productId);
  return found && productFacts(found, context.places());
}

const templates = { product: productTemplate, digest: digestTemplate };

/** Pause after a failed request: doubled by each further failure. */
const pauseMs = { first: 30_000, max: 600_000, settings: 900_000, retryAfterMax: 3_600_000 };

/** A wrong report would use up the budget of the day. */
const tokensFactorMax = 10;

/** Writes the texts of jobs. The caller holds the lock `summaries` during each job. */
export class SummaryWriter {
  readonly #context: SummaryContext;
  readonly #signal: AbortSignal;
  #failures = 0;
  /** Requests of the present job. Their tokens are saved with its result, in one commit. */
  #ended: EndedRequest[] = [];

  constructor(context: SummaryContext, signal: AbortSignal) {
    this.#context = context;
    this.#signal = signal;
  }

  /**
   * Completes a job or postpones it. Faults of the service do not reject; it rejects when the store or the index cannot
   * be used, and when the signal is aborted before a request was sent.
   */
  async write(job: SummaryJob): Promise<SummaryOutcome> {
    const { summaries, log, nowUs } = this.#context;
    this.#ended = [];
    const result = await this.#resultOf(job).catch((error: unknown): Blocked => {
      if (this.#signal.aborted || isAppError(error)) throw error;
      // A bug that one record triggers: other jobs continue.
      log.error({ err: error, subject: job.subject }, 'failed to write summary');
      const reason = 'Internal error: see the log of earshot, and please report it.';
      return { outcome: 'postponed', by: 'fault', dueAtUs: nowUs() + dayUs, reason, text: null };
    });
    await summaries.settle({ job, result, requests: this.#ended });
    return result;
  }

  async #resultOf(job: SummaryJob): Promise<SummaryOutcome> {
    const { model, nowUs } = this.#context;
    const facts = await factsOf(job, this.#context, this.#signal);
    // The index may have been replaced meanwhile.
    if (!(await isIndexed(this.#context))) {
      throw new AppError('unavailable', 'The product index is being rebuilt.');
    }
    if (facts === null) return { outcome: 'withdrawn' };
    const template = { text: templates[job.kind](facts), facts, model: null, createdAtUs: nowUs() };
    const done = { outcome: 'done', text: template, request: null } as const;
    const waitedUs = nowUs() - Math.max(job.requestedAtUs, job.scope?.untilUs ?? 0);
    if (model === null) return { ...done, reason: null };
    if (waitedUs > summaryWithinUs) {
      return { ...done, reason: 'The summary waited 7 days for the model.' };
    }
    const asked = chatRequest(job.kind, facts, model.name);
    const request = hash('sha256', JSON.stringify(asked), 'buffer');
    if (job.request !== null && request.equals(job.request)) return { outcome: 'same' };
    const answer = await this.#ask(model, asked, facts);
    if ('outcome' in answer) return { ...answer, text: template };
    if ('refused' in answer) {
      const reason = `The answer of the model was refused: ${answer.refused}.`;
      return { ...done, request, reason };
    }
    const text = { ...template, text: answer.text, model: model.name };
    return { ...done, text, request, reason: null };
  }

  /** Returns the text, or the last refused answer. The second request has the reason of the first refusal. */
  async #ask(
    model: SummaryModel,
    first: ChatRequest,
    facts: Facts,
  ): Promise<CheckedAnswer | Blocked> {
    let request = first;
    for (let attempt = 1; ; attempt += 1) {
      const blocked = await this.#budgetBlock(estimateTokens(request));
      if (blocked !== null) return blocked;
      let checked: CheckedAnswer;
      try {
        const answer = await this.#send(model, request);
        checked = checkAnswer(answer, facts, this.#context.places().names);
      } catch (error) {
        const known = inferenceFacts(error);
        if (known === null) throw error;
        if (known.scope !== 'answer') return this.#pause(errorText(error), known);
        checked = { refused: errorText(error) };
      }
      if ('text' in checked || attempt === 2) return checked;
      request = repeatedRequest(first, checked.refused);
    }
  }

  /** Sends a request, which counts against the budget from before it is sent. */
  async #send({ client }: SummaryModel, request: ChatRequest): Promise<string> {
    const { summaries, nowUs } = this.#context;
    const estimate = estimateTokens(request);
    const id = await summaries.beginRequest({ atUs: nowUs(), tokens: estimate });
    let spent: number | null = null;
    try {
      const { text, tokens } = await client.complete(request, this.#signal);
      spent = tokens;
      this.#failures = 0;
      return text;
    } catch (error) {
      spent = inferenceFacts(error)?.tokens ?? null;
      throw error;
    } finally {
      const tokens = Math.min(spent ?? estimate, tokensFactorMax * estimate);
      this.#ended.push({ id, tokensAbove: tokens - estimate });
    }
  }

  /** Returns why no request may be sent now; null if one may. */
  async #budgetBlock(tokens: number): Promise<Blocked | null> {
    const { summaries, budget, nowUs } = this.#context;
    const spent = await summaries.spending(nowUs());
    const isOut = spent.requests >= budget.requestsPerDay;
    const above = this.#ended.reduce((sum, { tokensAbove }) => sum + tokensAbove, 0);
    if (!isOut && spent.tokens + above + tokens <= budget.tokensPerDay) return null;
    const limit = `EARSHOT_SUMMARY_${isOut ? 'REQUESTS' : 'TOKENS'}_PER_DAY`;
    const dueAtUs = (spent.sinceUs ?? nowUs()) + dayUs;
    const reason = `The budget is used up (${limit}).`;
    return { outcome: 'postponed', by: 'budget', dueAtUs, reason, text: null };
  }

  #pause(reason: string, { scope, retryAfterMs }: InferenceFacts): Blocked {
    const doubledMs = Math.min(pauseMs.max, pauseMs.first * 2 ** this.#failures);
    const ownMs = scope === 'settings' ? pauseMs.settings : doubledMs;
    this.#failures = Math.min(this.#failures + 1, 10);
    const askedMs = Math.min(retryAfterMs ?? 0, pauseMs.retryAfterMax);
    const waitMs = Math.max(askedMs, jittered(ownMs, this.#context.random));
    const dueAtUs = this.#context.nowUs() + (scope === 'caller' ? 0 : Math.round(waitMs * 1000));
    return { outcome: 'postponed', by: 'service', dueAtUs, reason, text: null };
  }
}

/** Checks without the lock whether a job is due. */
async function isDue({ summaries, nowUs }: SummaryContext): Promise<boolean> {
  const due = await summaries.due({ nowUs: nowUs(), digestsUntilUs: nowUs(), limit: 1 });
  return due.length > 0;
}

/** Minimum time between two rounds, and maximum time without a change. */
const usual = { intervalMs: 1_000, idleMs: 10_000 };

/** Number of jobs, and time, after which another program may take its turn. */
const jobsMax = 16;
const turnMs = 1_000;

/** Delays after a failure: the disk may be full, or the index may be rebuilding. */
const retry = { retryMs: 10_000, retryMsMax: 300_000 };

/** Maximum wait for the lock: another program is in a request. */
export const lockWaitMs = 200_000;

/**
 * Starts the background job of a receiver. A failure is logged and retried; the intake is not affected. Its stop cancels
 * a request in flight, whose job is retried later.
 */
export function startSummaryWorker(
  context: SummaryContext,
  ruleOf: RuleOf,
  { intervalMs, idleMs } = usual,
): Job {
  const { activity, log, nowUs, random } = context;
  let writer: SummaryWriter | null = null;
  let pausedUntilUs = 0;
  /** Changes before a round that left nothing to do before the next one; otherwise undefined. */
  let since: number | undefined;
  /** Does one round: the next notifications, and some jobs. Resolves with true if another one should follow at once. */
  const round = async (signal: AbortSignal): Promise<boolean> => {
    since = undefined;
    const { changes } = activity;
    const seen = await context.notifications.cursor(summaryReader);
    const isRead = seen === (await context.notifications.lastPosition());
    // A pause that is too long was set by a clock that ran ahead.
    const isPaused = pausedUntilUs > nowUs() && pausedUntilUs < nowUs() + 2 * dayUs;
    if (isRead && (isPaused || !(await isDue(context)))) {
      since = changes;
      return false;
    }
    const release = await context.acquireLock('summaries', { waitMs: lockWaitMs, signal });
    try {
      const { hasMore, readUntilUs } = await collectJobs(context, ruleOf);
      if (isPaused) return hasMore;
      if (!(await isIndexed(context))) return false;
      const due = { nowUs: nowUs(), digestsUntilUs: readUntilUs, limit: jobsMax };
      const jobs = await context.summaries.due(due);
      const endMs = performance.now() + turnMs;
      writer ??= new SummaryWriter(context, signal);
      for (const job of jobs) {
        if (signal.aborted || performance.now() > endMs) break;
        const result = await writer.write(job);
        if (!isBlocked(result)) continue;
        const { reason, dueAtUs } = result;
        pausedUntilUs = dueAtUs;
        log.warn({ reason, until: formatDateUs(dueAtUs) }, 'paused summaries');
        break;
      }
      return hasMore || jobs.length > 0;
    } finally {
      release();
    }
  };
  return startJob(
    {
      every: { firstMs: intervalMs, intervalMs, ...retry },
      run: async (signal) => {
        while (!signal.aborted && (await round(signal)));
      },
      failed: 'failed to write summaries',
      busy: 'summaries wait for another program',
    },
    {
      pause: async (ms, stop) => {
        await pause(ms, stop);
        if (since !== undefined) await activity.next(idleMs, stop, { since });
      },
      ...{ random, log },
    },
  );
}
