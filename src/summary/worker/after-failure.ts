/** How a job goes on after a failure, its own or the service's. */
import { jittered } from '../../domain/jitter.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { SummaryJob, SummaryOutcome } from '../../domain/summaries.ts';
import { faultScope, type InferenceFault } from '../chat/inference-fault.ts';
import type { ServicePause } from './service-pause.ts';
import type { SummaryWorld } from './summary-world.ts';

/** Failures of its own that a job may have. */
const attemptsMax = 3;

/** A digest waits from the end of its window on. */
export function waitsSinceUs({ requestedAtUs, scope }: SummaryJob): number {
  return Math.max(requestedAtUs, scope?.untilUs ?? 0);
}

/** Pauses the worker where the fault is not the job's own. */
export function afterFault(
  fault: InferenceFault,
  job: SummaryJob,
  template: string,
  { world, pause }: { world: SummaryWorld; pause: ServicePause },
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
  if (scope === 'settings' || kind === 'rate_limited' || pause.isAsked()) {
    return { ...postponed, nextTryAtUs: pausedUntilUs };
  }
  // A job that makes the service fail steps back, further each time, behind those that do not.
  const waitedUs = nowUs - waitsSinceUs(job);
  const stepUs = Math.min(Math.max(waitedUs / 4, 60_000_000), 6 * 3_600_000_000);
  return { ...postponed, nextTryAtUs: Math.max(pausedUntilUs, nowUs + Math.round(stepUs)) };
}

/** An answer that cannot be used: asked for again, a few times, at growing intervals. */
export function afterOwnFailure(
  { attempts }: SummaryJob,
  error: string,
  template: string,
  { nowUs, random }: SummaryWorld,
): SummaryOutcome {
  if (attempts + 1 >= attemptsMax) return { outcome: 'failed', error, template };
  const waitUs = jittered(60_000_000 * 2 ** attempts, random);
  const nextTryAtUs = nowUs() + Math.round(waitUs);
  return { outcome: 'postponed', error, nextTryAtUs, counts: true, template };
}
