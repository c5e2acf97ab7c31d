/** One job from its facts to its text, or to the reason why there is none. */

import { hash } from 'node:crypto';
import { isAppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/dates.ts';
import { jittered } from '../../domain/job.ts';
import {
  budgetLimits,
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

/** What became of a job, for those who watch. */
export type JobEnd =
  | { end: 'written' | 'unverified' | 'template' | 'same' | 'withdrawn' | 'taken' }
  | { end: 'postponed' | 'failed' | 'dropped'; reason: string }
  | Blocked;

/** It waits for what others wait for as well. */
export type Blocked = { reason: string; untilUs: number } & (
  | { end: 'budget'; limit: keyof SummaryBudget }
  | { end: 'index' }
);

export interface WorkDeps {
  context: SummaryContext;
  pause: ServicePause;
  signal: AbortSignal;
}

/** A job, and what it is done with. */
interface Work extends WorkDeps {
  job: SummaryJob;
}

/** Work with the facts of its subject. */
interface PreparedWork extends Work, Prepared {}

/** A program that reports no outcome for so long has died. */
const leaseUs = (answerTimeoutMs + 60_000) * 1000;

/** An index with a lag is checked again after this. */
const indexWaitUs = 5_000_000;

/** A service that reports more than so many times the estimate is wrong, and would end the day's budget. */
const tokensFactorMax = 10;

/**
 * Never rejects for what the service does or a record holds; rejects where the store or the index cannot be
 * used, and when the signal is aborted before anything was sent.
 */
export async function doJob(job: SummaryJob, asking: WorkDeps): Promise<JobEnd> {
  const { context, signal } = asking;
  const work = { ...asking, job };
  if (context.nowUs() - waitsSinceUs(job) > summaryWithinUs) {
    const error = 'It has waited for 7 days, for the budget or for the service.';
    return close(work, { outcome: 'dropped', error, template: null });
  }
  if (!(await isIndexed(job, context))) {
    const reason =
      'The product index has yet to read what it is about. `earshot index status` tells more.';
    return hold(work, { end: 'index', reason, untilUs: context.nowUs() + indexWaitUs }, null);
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
      'The product index does not know this product. `earshot index status` tells more.';
    return close(work, { outcome: 'failed', error, template: null });
  }
  if (context.model !== null) return askOnce({ ...work, ...prepared }, context.model);
  const { template } = prepared;
  const kept = { model: null, verified: true, doubts: [], createdAtUs: context.nowUs() };
  const key = requestKey(job, { model: null, messages: template });
  return close(work, { outcome: 'text', key, text: { text: template, ...kept } });
}

async function askOnce(work: PreparedWork, model: SummaryModel): Promise<JobEnd> {
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
    const reason = `It waits for the budget: ${budget[limit]} ${of} (${variable}).`;
    return hold(work, { end: 'budget', limit, reason, untilUs }, template);
  }
  const { result, tokens } = await answerOf(request, key, work, model);
  const spent = tokens === null ? null : Math.min(tokens, estimate * tokensFactorMax);
  return close(work, result, { id: claim.requestId, tokens: spent });
}

/** Sends the request, and checks the answer. */
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
      const error = `The answer cannot be shown: ${check.reason}.`;
      return { result: afterOwnFailure(error, work), tokens };
    }
    const doubts = check.doubts.map(({ words }) => words);
    if (!check.verified && job.doubted === null) {
      const error = `The answer states what the facts do not have (${doubts.join(', ')}); it is asked for once more.`;
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

/** A record or an answer that our own code fails on must not keep the others waiting. */
function ownError(err: unknown, { job: { kind, subject }, context }: Work): string {
  context.log.error({ err, kind, subject }, 'a summary cannot be made');
  return 'This is an error of earshot itself; its log has more. Please report it.';
}

async function hold(work: Work, held: Blocked, template: string | null): Promise<JobEnd> {
  const { reason: error, untilUs: nextAttemptAtUs } = held;
  await close(work, { outcome: 'postponed', error, nextAttemptAtUs, counts: false, template });
  return held;
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

/** Failures of its own that a job may have. */
const attemptsMax = 3;

/** A digest waits from the end of its window on. */
function waitsSinceUs({ requestedAtUs, scope }: SummaryJob): number {
  return Math.max(requestedAtUs, scope?.untilUs ?? 0);
}

/** Pauses the worker where the fault is not the job's own. */
function afterFault(fault: InferenceFault, work: PreparedWork): SummaryOutcome {
  const { job, template, context, pause } = work;
  const { kind, message: error, retryAfterMs } = fault;
  const postponed = { outcome: 'postponed', error, counts: false, template } as const;
  const nowUs = context.nowUs();
  if (kind === 'cancelled') return { ...postponed, nextAttemptAtUs: nowUs };
  const scope = faultScope(kind);
  if (scope === 'job') {
    // It answered, be it with nothing.
    pause.noteAnswer();
    return afterOwnFailure(error, work);
  }
  const pausedUntilUs = pause.noteFault(scope, retryAfterMs);
  context.log.warn({ kind, reason: error, until: formatDateUs(pausedUntilUs) }, 'summaries wait');
  if (scope === 'settings' || kind === 'rate_limited' || pause.isRetryAfter()) {
    return { ...postponed, nextAttemptAtUs: pausedUntilUs };
  }
  // A job that makes the service fail steps back, further each time, behind those that do not.
  const waitedUs = nowUs - waitsSinceUs(job);
  const stepUs = Math.min(Math.max(waitedUs / 4, 60_000_000), 6 * 3_600_000_000);
  return { ...postponed, nextAttemptAtUs: Math.max(pausedUntilUs, nowUs + Math.round(stepUs)) };
}

/** An answer that cannot be used: asked for again, a few times, at growing intervals. */
function afterOwnFailure(error: string, { job, template, context }: PreparedWork): SummaryOutcome {
  const { attempts } = job;
  if (attempts + 1 >= attemptsMax) return { outcome: 'failed', error, template };
  const waitUs = jittered(60_000_000 * 2 ** attempts, context.random);
  const nextAttemptAtUs = context.nowUs() + Math.round(waitUs);
  return { outcome: 'postponed', error, nextAttemptAtUs, counts: true, template };
}

/** `first`, or, once an answer to it was doubted, the one that says what about it was wrong. */
export function nextRequest(job: NewSummaryJob | SummaryJob, first: ChatRequest): ChatRequest {
  const doubted = 'doubted' in job ? job.doubted : null;
  return doubted === null ? first : repeatRequest(first, doubted);
}

/**
 * The digest of subject, model and messages: all that an answer depends on. For a template that stands for itself,
 * as no model is configured, `model` is null.
 */
export function requestKey(
  { kind, subject }: Pick<SummaryJob, 'kind' | 'subject'>,
  { model, messages }: { model: string | null; messages: ChatRequest['messages'] | string },
): Uint8Array {
  return hash('sha256', JSON.stringify([kind, subject, model, messages]), 'buffer');
}

/** A digest needs all that was received in its window. */
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
