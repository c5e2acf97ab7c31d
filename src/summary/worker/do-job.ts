/** One job from its facts to its text, or to the reason why there is none. */
import { isAppError } from '../../domain/app-error.ts';
import {
  budgetLimits,
  type SummaryBudget,
  type SummaryJob,
  type SummaryOutcome,
} from '../../domain/summaries.ts';
import { answerTimeoutMs } from '../chat/chat-client.ts';
import type { ChatRequest } from '../chat/chat-request.ts';
import { InferenceFault } from '../chat/inference-fault.ts';
import { checkAnswer } from '../check/check-answer.ts';
import { chatRequest } from '../prompt/chat-prompt.ts';
import { estimateTokens } from '../prompt/estimate-tokens.ts';
import { afterFault, afterOwnFailure, waitsSinceUs } from './after-failure.ts';
import { tellWithinUs } from './collect-jobs.ts';
import { isIndexed } from './index-reach.ts';
import { nextRequest } from './next-request.ts';
import { type Prepared, prepare } from './prepared.ts';
import { requestKey, templateKey } from './request-key.ts';
import type { ServicePause } from './service-pause.ts';
import type { SummaryModel, SummaryWorld } from './summary-world.ts';

/** What became of a job, for those who watch. */
export type JobEnd =
  | { end: 'written' | 'unverified' | 'template' | 'same' | 'withdrawn' | 'taken' }
  | { end: 'postponed' | 'failed' | 'dropped'; reason: string }
  | Held;

/** It waits for what others wait for as well. */
export type Held = { reason: string; untilUs: number } & (
  | { end: 'budget'; limit: keyof SummaryBudget }
  | { end: 'index' }
);

export interface Asking {
  world: SummaryWorld;
  pause: ServicePause;
  signal: AbortSignal;
}

/** Somebody who asks and does not say what came of it for so long has died. */
const leaseUs = (answerTimeoutMs + 60_000) * 1000;
/** An index that is behind is looked at again after this. */
const indexWaitUs = 5_000_000;
/** A service that tells of more than so many times the estimate is wrong, and would end the day's budget. */
const tokensFactorMax = 10;

/**
 * Never rejects for what the service does or a record holds; rejects where the store or the index cannot be
 * used, and when the signal is aborted before anything was sent.
 */
export async function doJob(job: SummaryJob, asking: Asking): Promise<JobEnd> {
  const { world, signal } = asking;
  if (world.nowUs() - waitsSinceUs(job) > tellWithinUs) {
    const reason = 'It has waited for 7 days, for the budget or for the service.';
    return close(job, world, { outcome: 'dropped', error: reason, template: null });
  }
  if (!(await isIndexed(job, world))) return waitForIndex(job, world);
  const prepared = await prepare(job, world, signal).catch((error: unknown) => {
    if (signal.aborted || (isAppError(error) && error.code !== 'invalid')) throw error;
    return ownError(error, job, world);
  });
  if (typeof prepared === 'string') {
    return close(job, world, { outcome: 'failed', error: prepared, template: null });
  }
  if (prepared === null && job.kind === 'digest') {
    return close(job, world, { outcome: 'withdrawn' });
  }
  if (prepared === null) {
    const error =
      'The product index does not know this product. `earshot index status` tells more.';
    return close(job, world, { outcome: 'failed', error, template: null });
  }
  if (world.model === null) return keepTemplate(job, prepared.template, world);
  return askOnce(job, prepared, { ...asking, model: world.model });
}

type AskingModel = Asking & { model: SummaryModel };

async function askOnce(
  job: SummaryJob,
  prepared: Prepared,
  { model, ...asking }: AskingModel,
): Promise<JobEnd> {
  const { world } = asking;
  const first = chatRequest(prepared.sheet, model.name);
  const key = requestKey(job, first);
  if ((await world.summaries.known(key)) !== null) {
    return close(job, world, { outcome: 'known', key });
  }
  const request = nextRequest(job, first);
  const estimate = estimateTokens(request, job.kind);
  const nowUs = world.nowUs();
  const claim = await world.summaries.claim({
    job,
    model: model.name,
    tokens: estimate,
    budget: world.budget,
    leaseUntilUs: nowUs + leaseUs,
    nowUs,
  });
  if (claim.outcome === 'taken') return { end: 'taken' };
  if (claim.outcome === 'budget') return waitForBudget(job, prepared, claim, world);
  const { result, tokens } = await answerOf(request, key, job, prepared, { ...asking, model });
  const spent = tokens === null ? null : Math.min(tokens, estimate * tokensFactorMax);
  return close(job, world, result, { id: claim.requestId, tokens: spent });
}

interface Answered {
  result: SummaryOutcome;
  tokens: number | null;
}

/** Sends the request, and judges what came. */
async function answerOf(
  request: ChatRequest,
  key: Uint8Array,
  job: SummaryJob,
  { sheet, template }: Prepared,
  { world, pause, signal, model }: AskingModel,
): Promise<Answered> {
  try {
    const { text: answer, totalTokens: tokens } = await model.client.complete(request, signal);
    pause.noteAnswer();
    const check = checkAnswer(answer, sheet, world.places().isPlaceName);
    if (!check.safe) {
      const error = `The answer cannot be shown: ${check.reason}.`;
      return { result: afterOwnFailure(job, error, template, world), tokens };
    }
    const doubts = check.doubts.map(({ words }) => words);
    if (!check.verified && job.doubted === null) {
      const error = `The answer states what the facts do not have (${doubts.join(', ')}); it is asked for once more.`;
      const doubted = [...new Set(check.doubts.map(({ kind }) => kind))];
      const again = { nextTryAtUs: world.nowUs(), counts: true, doubted, template };
      return { result: { outcome: 'postponed', error, ...again }, tokens };
    }
    const { text, verified } = check;
    const kept = { text, model: model.name, verified, doubts, createdAtUs: world.nowUs() };
    return { result: { outcome: 'text', key, text: kept }, tokens };
  } catch (error) {
    if (error instanceof InferenceFault) {
      return { result: afterFault(error, job, template, { world, pause }), tokens: error.tokens };
    }
    const result = { outcome: 'failed', error: ownError(error, job, world), template } as const;
    return { result, tokens: null };
  }
}

/** A record or an answer that our own code fails on must not keep the others waiting. */
function ownError(err: unknown, { kind, subject }: SummaryJob, { log }: SummaryWorld): string {
  log.error({ err, kind, subject }, 'a summary cannot be made');
  return 'This is an error of earshot itself; its log has more. Please report it.';
}

async function waitForBudget(
  job: SummaryJob,
  { template }: Prepared,
  { limit, freeAtUs }: { limit: keyof SummaryBudget; freeAtUs: number },
  world: SummaryWorld,
): Promise<JobEnd> {
  const { of, variable } = budgetLimits[limit];
  const reason = `It waits for the budget: ${world.budget[limit]} ${of} (${variable}).`;
  return hold(job, world, { end: 'budget', limit, reason, untilUs: freeAtUs }, template);
}

function waitForIndex(job: SummaryJob, world: SummaryWorld): Promise<JobEnd> {
  const reason =
    'The product index has yet to read what it is about. `earshot index status` tells more.';
  return hold(job, world, { end: 'index', reason, untilUs: world.nowUs() + indexWaitUs }, null);
}

async function hold(
  job: SummaryJob,
  world: SummaryWorld,
  held: Held,
  template: string | null,
): Promise<JobEnd> {
  const { reason: error, untilUs: nextTryAtUs } = held;
  await close(job, world, { outcome: 'postponed', error, nextTryAtUs, counts: false, template });
  return held;
}

function keepTemplate(job: SummaryJob, template: string, world: SummaryWorld): Promise<JobEnd> {
  const kept = { model: null, verified: true, doubts: [], createdAtUs: world.nowUs() };
  const key = templateKey(job, template);
  return close(job, world, { outcome: 'text', key, text: { text: template, ...kept } });
}

async function close(
  job: SummaryJob,
  { summaries, nowUs }: SummaryWorld,
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
