/** Processes one summary job: from the facts to a text, or to the reason for its absence. */

import { hash } from 'node:crypto';
import { isAppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/dates.ts';
import { jittered } from '../../domain/job.ts';
import {
  budgetLimits,
  budgetSpent,
  type NewSummaryJob,
  type SummaryBudget,
  type SummaryJob,
  type SummaryOutcome,
} from '../../domain/summaries.ts';
import { answerTimeoutMs, type ChatRequest } from '../chat/chat-client.ts';
import { faultScope, InferenceFault } from '../chat/inference-fault.ts';
import { checkAnswer } from '../check/check-answer.ts';
import { chatRequest, estimateTokens, repeatRequest } from '../prompt.ts';
import { summaryWithinUs } from './collect-jobs.ts';
import { type Prepared, prepare } from './prepare.ts';
import type { ServicePause, SummaryContext, SummaryModel } from './summary-context.ts';

/** Result of a job. */
export type JobEnd =
  | { end: 'written' | 'unverified' | 'template' | 'same' | 'withdrawn' | 'taken' }
  | { end: 'postponed' | 'failed' | 'dropped'; reason: string }
  | Blocked;

/** The job waits for the budget or the index, and others wait too. */
export type Blocked = { reason: string; untilUs: number } & (
  | { end: 'budget'; limit: keyof SummaryBudget }
  | { end: 'index' }
);

export interface WorkDeps {
  context: SummaryContext;
  pause: ServicePause;
  signal: AbortSignal;
}

/** A job with its dependencies. */
interface Work extends WorkDeps {
  job: SummaryJob;
}

/** Work with the facts of its subject. */
interface PreparedWork extends Work, Prepared {}

/** A process that reports no outcome within this time has died. */
const leaseUs = (answerTimeoutMs + 60_000) * 1000;

/** Delay before a lagging index is checked again. */
const indexWaitUs = 5_000_000;

/** Reported tokens are capped at this multiple of the estimate: a wrong report would use up the day's budget. */
const tokensFactorMax = 10;

/**
 * Processes a job. Faults of the service or of a record do not reject; it rejects when the store or the index
 * cannot be used, and when the signal is aborted before a request was sent.
 */
export async function doJob(job: SummaryJob, asking: WorkDeps): Promise<JobEnd> {
  const { context, signal } = asking;
  const work = { ...asking, job };
  if (context.nowUs() - waitsSinceUs(job) > summaryWithinUs) {
    const error = 'Dropped: the summary waited 7 days for the budget or the service.';
    return close(work, { outcome: 'dropped', error, template: null });
  }
  if (!(await isIndexed(job, context))) {
    const reason =
      'The product index is not up to date. To check the index: `earshot index status`.';
    return postpone(work, { end: 'index', reason, untilUs: context.nowUs() + indexWaitUs }, null);
  }
  const prepared = await prepare(job, context, signal).catch((error: unknown) => {
    if (signal.aborted || (isAppError(error) && error.code !== 'invalid')) throw error;
    return ownError(error, work);
  });
  if (typeof prepared === 'string') {
    return close(work, { outcome: 'failed', error: prepared, template: null });
  }
  if (prepared === null) {
    if (job.kind === 'digest') return close(work, { outcome: 'withdrawn' });
    const error =
      'This product is not in the product index. To check the index: `earshot index status`.';
    return close(work, { outcome: 'failed', error, template: null });
  }
  if (context.model !== null) return requestText({ ...work, ...prepared }, context.model);
  const { template } = prepared;
  const kept = { model: null, verified: true, doubts: [], createdAtUs: context.nowUs() };
  const key = requestKey(job, { model: null, messages: template });
  return close(work, { outcome: 'text', key, text: { text: template, ...kept } });
}

async function requestText(work: PreparedWork, model: SummaryModel): Promise<JobEnd> {
  const { job, sheet, template, context } = work;
  const { summaries, budget } = context;
  const first = chatRequest(sheet, model.name);
  const key = requestKey(job, first);
  if ((await summaries.known(key)) !== null) return close(work, { outcome: 'known', key });
  const request = nextRequest(job, first);
  const estimate = estimateTokens(request, job.kind);
  const nowUs = context.nowUs();
  const leaseUntilUs = nowUs + leaseUs;
  const claimed = { job, model: model.name, tokens: estimate, budget, leaseUntilUs, nowUs };
  const claim = await summaries.claim(claimed);
  if (claim.outcome === 'superseded') return { end: 'taken' };
  if (claim.outcome === 'budget') {
    const { limit, freeAtUs: untilUs } = claim;
    const { of, variable } = budgetLimits[limit];
    const reason = `${budgetSpent} ${budget[limit]} ${of} (${variable}).`;
    return postpone(work, { end: 'budget', limit, reason, untilUs }, template);
  }
  const { result, tokens } = await answerOf(request, key, work, model);
  const spent = tokens === null ? null : Math.min(tokens, estimate * tokensFactorMax);
  return close(work, result, { id: claim.requestId, tokens: spent });
}

/** Sends the request and checks the answer. */
async function answerOf(
  request: ChatRequest,
  key: Uint8Array,
  work: PreparedWork,
  model: SummaryModel,
): Promise<{ result: SummaryOutcome; tokens: number | null }> {
  const { job, sheet, template, context, pause, signal } = work;
  try {
    const { text: answer, totalTokens: tokens } = await model.client.complete(request, signal);
    pause.noteAnswer();
    const check = checkAnswer(answer, sheet, context.places().isPlaceName);
    if (!check.safe) {
      const error = `The answer of the model was rejected: ${check.reason}.`;
      return { result: afterOwnFailure(error, work), tokens };
    }
    const doubts = check.doubts.map(({ words }) => words);
    if (!check.verified && job.doubted === null) {
      const error = `The answer contains statements that the facts do not confirm (${doubts.join(', ')}); the text is requested once more.`;
      const doubted = [...new Set(check.doubts.map(({ kind }) => kind))];
      const again = { nextAttemptAtUs: context.nowUs(), counts: true, doubted, template };
      return { result: { outcome: 'postponed', error, ...again }, tokens };
    }
    const { text, verified } = check;
    const kept = { text, model: model.name, verified, doubts, createdAtUs: context.nowUs() };
    return { result: { outcome: 'text', key, text: kept }, tokens };
  } catch (error) {
    if (error instanceof InferenceFault) {
      return { result: afterFault(error, work), tokens: error.tokens };
    }
    const result = { outcome: 'failed', error: ownError(error, work), template } as const;
    return { result, tokens: null };
  }
}

/** Logs a bug that one record or answer triggers; other jobs continue. */
function ownError(err: unknown, { job: { kind, subject }, context }: Work): string {
  context.log.error({ err, kind, subject }, 'failed to write summary');
  return 'Internal error; see the log of earshot. Please report it.';
}

async function postpone(work: Work, blocked: Blocked, template: string | null): Promise<JobEnd> {
  const { reason: error, untilUs: nextAttemptAtUs } = blocked;
  await close(work, { outcome: 'postponed', error, nextAttemptAtUs, counts: false, template });
  return blocked;
}

async function close(
  { job, context: { summaries, nowUs } }: Work,
  result: SummaryOutcome,
  request: { id: number; tokens: number | null } | null = null,
): Promise<JobEnd> {
  await summaries.settle({ job, request, result, nowUs: nowUs() });
  switch (result.outcome) {
    case 'text':
      if (result.text.model === null) return { end: 'template' };
      return { end: result.text.verified ? 'written' : 'unverified' };
    case 'known':
      return { end: 'same' };
    case 'withdrawn':
      return { end: 'withdrawn' };
    default:
      return { end: result.outcome, reason: result.error };
  }
}

/** Maximum number of failures of a single job, not counting faults of the service. */
const attemptsMax = 3;

/** Returns the start of the wait; for a digest at the earliest the end of its window. */
function waitsSinceUs({ requestedAtUs, scope }: SummaryJob): number {
  return Math.max(requestedAtUs, scope?.untilUs ?? 0);
}

/** Postpones the job, and pauses the worker unless only this job failed. */
function afterFault(fault: InferenceFault, work: PreparedWork): SummaryOutcome {
  const { job, template, context, pause } = work;
  const { kind, message: error, retryAfterMs } = fault;
  const postponed = { outcome: 'postponed', error, counts: false, template } as const;
  const nowUs = context.nowUs();
  if (kind === 'cancelled') return { ...postponed, nextAttemptAtUs: nowUs };
  const scope = faultScope(kind);
  if (scope === 'job') {
    // The service did answer, perhaps with nothing.
    pause.noteAnswer();
    return afterOwnFailure(error, work);
  }
  const pausedUntilUs = pause.noteFault(scope, retryAfterMs);
  const fields = { kind, reason: error, until: formatDateUs(pausedUntilUs) };
  context.log.warn(fields, 'paused summaries');
  if (scope === 'settings' || kind === 'rate_limited' || pause.isRetryAfter()) {
    return { ...postponed, nextAttemptAtUs: pausedUntilUs };
  }
  // The delay grows, so that a job that makes the service fail does not block the others.
  const waitedUs = nowUs - waitsSinceUs(job);
  const delayUs = Math.min(Math.max(waitedUs / 4, 60_000_000), 6 * 3_600_000_000);
  return { ...postponed, nextAttemptAtUs: Math.max(pausedUntilUs, nowUs + Math.round(delayUs)) };
}

/** Retries a job with an unusable answer a few times, with growing delays. */
function afterOwnFailure(error: string, { job, template, context }: PreparedWork): SummaryOutcome {
  const { attempts } = job;
  if (attempts + 1 >= attemptsMax) return { outcome: 'failed', error, template };
  const waitUs = jittered(60_000_000 * 2 ** attempts, context.random);
  const nextAttemptAtUs = context.nowUs() + Math.round(waitUs);
  return { outcome: 'postponed', error, nextAttemptAtUs, counts: true, template };
}

/** Returns `first`, or, if its answer had doubts, a repeat request that names them. */
export function nextRequest(job: NewSummaryJob | SummaryJob, first: ChatRequest): ChatRequest {
  const doubted = 'doubted' in job ? job.doubted : null;
  return doubted === null ? first : repeatRequest(first, doubted);
}

/**
 * Hashes subject, model and messages: everything that an answer depends on. `model` is null for a template that
 * is the summary, because no model is configured.
 */
export function requestKey(
  { kind, subject }: Pick<SummaryJob, 'kind' | 'subject'>,
  { model, messages }: { model: string | null; messages: ChatRequest['messages'] | string },
): Uint8Array {
  return hash('sha256', JSON.stringify([kind, subject, model, messages]), 'buffer');
}

/** Checks whether the index has the notifications of the job; a digest needs all of its window. */
async function isIndexed(
  { position, scope }: Pick<SummaryJob, 'position' | 'scope'>,
  { products, notifications }: Pick<SummaryContext, 'products' | 'notifications'>,
): Promise<boolean> {
  const indexed = await products.indexedPosition();
  if (position !== null && position <= indexed) return true;
  if (indexed >= (await notifications.lastPosition())) return true;
  if (scope === null) return false;
  const { fromUs: sinceUs, untilUs } = scope;
  const window = { time: 'received', sinceUs, untilUs } as const;
  for await (const last of notifications.find({ ...window, order: 'newest', limit: 1 })) {
    return last.position <= indexed;
  }
  return true;
}
