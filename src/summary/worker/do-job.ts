/** One job from its facts to its text, or to the reason why there is none. */
import { isAppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { SummaryBudget, SummaryJob, SummaryOutcome } from '../../domain/summaries.ts';
import { answerTimeoutMs } from '../chat/chat-client.ts';
import type { ChatRequest } from '../chat/chat-request.ts';
import { faultScope, InferenceFault } from '../chat/inference-fault.ts';
import { checkAnswer } from '../check/check-answer.ts';
import { chatRequest, repeatRequest } from '../prompt/chat-prompt.ts';
import { estimateTokens } from '../prompt/estimate-tokens.ts';
import { tellWithinUs } from './collect-jobs.ts';
import { type Prepared, prepare } from './prepared.ts';
import { requestKey, templateKey } from './request-key.ts';
import type { ServicePause } from './service-pause.ts';
import type { SummaryModel, SummaryWorld } from './summary-world.ts';

/** What became of a job, for those who watch. */
export type JobEnd =
  | { end: 'written' | 'unverified' | 'template' | 'same' | 'withdrawn' | 'taken' }
  | { end: 'postponed' | 'failed' | 'dropped'; reason: string }
  | { end: 'budget'; reason: string; freeAtUs: number };

export interface Asking {
  world: SummaryWorld;
  pause: ServicePause;
  signal: AbortSignal;
}

/** Failures of its own that a job may have. */
const attemptsMax = 3;
/** Somebody who asks and does not say what came of it for so long has died. */
const leaseUs = (answerTimeoutMs + 60_000) * 1000;

/**
 * Never rejects for what the service does or a record holds; rejects where the store or the index cannot be
 * used, and when the signal is aborted before anything was sent.
 */
export async function doJob(job: SummaryJob, asking: Asking): Promise<JobEnd> {
  const { world, signal } = asking;
  if (world.nowUs() - job.requestedAtUs > tellWithinUs) {
    const reason = 'It has waited for 7 days, for the budget or for the service.';
    return close(job, world, { outcome: 'dropped', error: reason, template: null });
  }
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
  const request = job.attempts === 0 ? first : repeatRequest(first);
  const nowUs = world.nowUs();
  const claim = await world.summaries.claim({
    job,
    model: model.name,
    tokens: estimateTokens(request),
    budget: world.budget,
    leaseUntilUs: nowUs + leaseUs,
    nowUs,
  });
  if (claim.outcome === 'taken') return { end: 'taken' };
  if (claim.outcome === 'budget') return waitForBudget(job, prepared, claim, world);
  const { result, tokens } = await answerOf(request, key, job, prepared, { ...asking, model });
  return close(job, world, result, { id: claim.requestId, tokens });
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
    if (!check.verified && job.attempts === 0) {
      const error = `The answer states what the facts do not have (${doubts.join(', ')}); it is asked for once more.`;
      const nextTryAtUs = world.nowUs();
      return {
        result: { outcome: 'postponed', error, nextTryAtUs, counts: true, template },
        tokens,
      };
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

function afterFault(
  fault: InferenceFault,
  job: SummaryJob,
  template: string,
  { world, pause }: Pick<Asking, 'world' | 'pause'>,
): SummaryOutcome {
  const { kind, message: error, retryAfterMs } = fault;
  const postponed = { outcome: 'postponed', error, counts: false, template } as const;
  const nowUs = world.nowUs();
  if (kind === 'cancelled') return { ...postponed, nextTryAtUs: nowUs };
  const scope = faultScope(kind);
  if (scope === 'job') {
    // It answered, be it with nothing.
    pause.noteAnswer();
    return afterOwnFailure(job, error, template, world);
  }
  const pausedUntilUs = pause.noteFault(scope, retryAfterMs);
  world.log.warn({ kind, reason: error, until: formatDateUs(pausedUntilUs) }, 'summaries wait');
  if (scope === 'settings' || kind === 'rate_limited') {
    return { ...postponed, nextTryAtUs: pausedUntilUs };
  }
  // A job that makes the service fail steps back, further each time, behind those that do not.
  const waitedUs = nowUs - job.requestedAtUs;
  const stepUs = Math.min(Math.max(waitedUs / 4, 60_000_000), 6 * 3_600_000_000);
  return { ...postponed, nextTryAtUs: Math.max(pausedUntilUs, nowUs + Math.round(stepUs)) };
}

/** A record or an answer that our own code fails on must not keep the others waiting. */
function ownError(err: unknown, { kind, subject }: SummaryJob, { log }: SummaryWorld): string {
  log.error({ err, kind, subject }, 'a summary cannot be made');
  return 'This is an error of earshot itself; its log has more. Please report it.';
}

function afterOwnFailure(
  { attempts }: SummaryJob,
  error: string,
  template: string,
  { nowUs, random }: SummaryWorld,
): SummaryOutcome {
  if (attempts + 1 >= attemptsMax) return { outcome: 'failed', error, template };
  const waitUs = 60_000_000 * 2 ** attempts * (0.75 + random() / 2);
  const nextTryAtUs = nowUs() + Math.round(waitUs);
  return { outcome: 'postponed', error, nextTryAtUs, counts: true, template };
}

const limitNames: Record<keyof SummaryBudget, string> = {
  requestsPerHour: 'requests an hour (EARSHOT_SUMMARY_REQUESTS_PER_HOUR)',
  requestsPerDay: 'requests a day (EARSHOT_SUMMARY_REQUESTS_PER_DAY)',
  tokensPerDay: 'tokens a day (EARSHOT_SUMMARY_TOKENS_PER_DAY)',
};

async function waitForBudget(
  job: SummaryJob,
  { template }: Prepared,
  { limit, freeAtUs }: { limit: keyof SummaryBudget; freeAtUs: number },
  world: SummaryWorld,
): Promise<JobEnd> {
  const error = `It waits for the budget: ${world.budget[limit]} ${limitNames[limit]}.`;
  const wait = { outcome: 'postponed', error, nextTryAtUs: freeAtUs, counts: false } as const;
  await close(job, world, { ...wait, template });
  return { end: 'budget', reason: error, freeAtUs };
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
