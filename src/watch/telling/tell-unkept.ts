/** Tells what cannot be kept: a store that takes nothing, as on a full disk, takes no alert of it either. */
import type { AlertFinding } from '../../domain/alerts.ts';
import type { WatchWorld } from '../watch-world.ts';
import { alertMessage } from './alert-message.ts';
import { tellOnce } from './tell-once.ts';

/** The number of an alert that is not in the store. */
const unkeptId = 0;
/** Nothing is remembered of it, and so its end is not told; while it lasts, it is told again. */
const againUs = 3_600_000_000;

/**
 * Tells critical findings through every channel at once, each finding at most once an hour where it was taken, and
 * anew in the next round where it was not. `toldAtUs` remembers what was taken, by channel, kind and subject, for as
 * long as the program runs. Never rejects; waits for one attempt of each, and ends early with the signal.
 */
export async function tellUnkept(
  findings: readonly AlertFinding[],
  world: WatchWorld,
  toldAtUs: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const { channels, nowUs, log } = world;
  const now = nowUs();
  const wasTold = (key: string) => {
    const toldUs = toldAtUs.get(key);
    // One that is ahead was dated by a clock that was.
    return toldUs !== undefined && toldUs <= now && now - toldUs < againUs;
  };
  const critical = findings.filter(({ severity }) => severity === 'critical');
  const telling = critical.flatMap((finding) => {
    const alert = { ...finding, id: unkeptId, raisedAtUs: now, resolvedAtUs: null };
    return channels.map(async (channel) => {
      const key = `${channel} ${finding.kind} ${finding.subject}`;
      if (wasTold(key) || signal.aborted) return;
      const delivery = { id: now, alert, change: 'raised' as const };
      const error = await tellOnce({ channel, message: alertMessage(delivery) }, world, signal);
      if (error === null) toldAtUs.set(key, now);
      else if (!signal.aborted) {
        log.error({ channel, reason: error }, 'an alert could not be told');
      }
    });
  });
  await Promise.all(telling);
}
