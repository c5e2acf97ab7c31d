/** Tells what is to be told through one channel: at least once, each alert before its end. */
import {
  type AlertChannel,
  type AlertDelivery,
  alertRetryDelayMaxUs,
} from '../../domain/alerts.ts';
import { jittered } from '../../domain/jitter.ts';
import type { WatchWorld } from '../watch-world.ts';
import { alertMessage } from './alert-message.ts';
import { tellOnce } from './tell-once.ts';

const minuteUs = 60_000_000;
/** After a failure, doubling. */
const retryMinUs = minuteUs;
/** Six waits that double, then one an hour: about 24 hours of trying. */
const attemptsMax = 30;
/** Deliveries of one call. */
const deliveriesMax = 1_000;

type Telling = Pick<
  WatchWorld,
  'alerts' | 'channels' | 'tell' | 'nowUs' | 'random' | 'pause' | 'log'
>;

/**
 * Tells what is due through the channel, oldest first, and stops at the first failure: the channel is most likely
 * down, and what comes after it is tried in the next call. What is due through a channel that is set up no longer is
 * given up. Resolves with how many were told. Rejects with `unavailable` where the store cannot be used; then
 * something may be told a second time.
 */
export async function deliverDue(
  world: Telling,
  channel: AlertChannel,
  signal: AbortSignal,
): Promise<number> {
  const { alerts, channels, nowUs } = world;
  const due = await alerts.dueDeliveries({ nowUs: nowUs(), limit: deliveriesMax, channel });
  if (!channels.includes(channel)) return giveUp(due, channel, world);
  let told = 0;
  for (const delivery of due) {
    if (signal.aborted) break;
    const error = await tellOnce({ channel, message: alertMessage(delivery) }, world, signal);
    if (error === null) {
      await alerts.settleDelivery({ id: delivery.id, atUs: nowUs(), outcome: 'told' });
      told += 1;
      continue;
    }
    // The program ends: that is not the channel's failure.
    if (!signal.aborted) await settleFailure(delivery, error, world);
    break;
  }
  return told;
}

async function giveUp(
  due: readonly AlertDelivery[],
  channel: AlertChannel,
  { alerts, nowUs, log }: Telling,
): Promise<number> {
  const error = `No ${channel} is set up for alerts any more.`;
  for (const { id } of due) {
    await alerts.settleDelivery({ id, atUs: nowUs(), outcome: 'given-up', error });
  }
  if (due.length > 0) log.warn({ channel, alerts: due.length, reason: error }, 'alerts given up');
  return 0;
}

async function settleFailure(
  delivery: AlertDelivery,
  error: string,
  { alerts, nowUs, random, log }: Telling,
): Promise<void> {
  const { id, channel, attempts, alert } = delivery;
  const fields = { channel, kind: alert.kind, subject: alert.subject, reason: error };
  const atUs = nowUs();
  if (attempts + 1 >= attemptsMax) {
    log.error(fields, 'an alert could not be told for a day; it is given up');
    return alerts.settleDelivery({ id, atUs, outcome: 'given-up', error });
  }
  const waitUs = jittered(Math.min(alertRetryDelayMaxUs, retryMinUs * 2 ** attempts), random);
  log.warn(fields, 'an alert could not be told; it is tried again');
  const nextTryAtUs = atUs + Math.round(waitUs);
  return alerts.settleDelivery({ id, atUs, outcome: 'failed', error, nextTryAtUs });
}
