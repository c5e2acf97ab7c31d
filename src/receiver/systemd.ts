/** Reports the state of the service to systemd: ready, alive, stopping (sd_notify(3)). */
import { execFile } from 'node:child_process';
import { type Io, pause } from '../core/cli/io.ts';
import type { Intake, Logger } from '../core/terms/ports.ts';

/** Timeout of `systemd-notify`; long, because systemd may be busy at boot. */
const notifyTimeoutMs = 10_000;

/** Below the store's own timeout of 30 s, so that an unanswered call is detected as such. */
const storeTimeoutMsMax = 10_000;

interface Watched {
  store: Pick<Intake, 'checkWritable'>;
  log: Logger;
}

/**
 * Reports that the receiver is up, then sends heartbeats at half of the watchdog's interval (sd_watchdog_enabled(3)),
 * as long as the event loop runs and the store answers. Does nothing without NOTIFY_SOCKET. `stop` reports that the
 * service is stopping, and ends the heartbeats.
 */
export function startSystemdNotices({ env, store, log }: Watched & Pick<Io, 'env'>): {
  stop(): void;
} {
  // Not set, or empty: no service manager.
  if (!env.NOTIFY_SOCKET) return { stop: () => undefined };
  const notify = createNotify(env, log);
  const stopping = new AbortController();
  void notify('READY=1');
  // Ignores WATCHDOG_PID: the unit accepts messages of all its processes (NotifyAccess=all).
  const watchdogMs = Number(env.WATCHDOG_USEC) / 1000;
  const { signal } = stopping;
  if (watchdogMs > 0) void sendHeartbeats(watchdogMs / 2, { store, log, notify, signal });
  return {
    stop: () => {
      stopping.abort();
      void notify('STOPPING=1');
    },
  };
}

async function sendHeartbeats(
  intervalMs: number,
  deps: Watched & { notify: ReturnType<typeof createNotify>; signal: AbortSignal },
): Promise<void> {
  const { store, log, notify, signal } = deps;
  const timeoutMs = Math.min(storeTimeoutMsMax, intervalMs / 4);
  let waitMs = intervalMs;
  for (;;) {
    await pause(waitMs, signal);
    if (signal.aborted) return;
    const alive = await answers(store, timeoutMs);
    // After a slow answer, checks again soon: there is time for several attempts.
    waitMs = alive ? intervalMs : intervalMs / 40;
    if (alive) await notify('WATCHDOG=1');
    else log.error({ timeoutMs }, 'store does not answer; heartbeat to systemd skipped');
  }
}

/**
 * True if the store answers in time, even with a refusal: a restart does not free disk space. A refusal
 * may end an older call that timed out, so it counts only if a second call is answered, too.
 */
async function answers(store: Pick<Intake, 'checkWritable'>, timeoutMs: number): Promise<boolean> {
  const ask = async () => {
    const { promise: timeout, resolve } = Promise.withResolvers<'timeout'>();
    const timer = setTimeout(resolve, timeoutMs, 'timeout');
    timer.unref();
    const answer = store.checkWritable().then(
      () => 'writable' as const,
      () => 'refused' as const,
    );
    return Promise.race([answer, timeout]).finally(() => clearTimeout(timer));
  };
  const first = await ask();
  return (first === 'refused' ? await ask() : first) !== 'timeout';
}

/**
 * Runs `systemd-notify`, as Node cannot open unix datagram sockets: one at a time, with a timeout, and
 * with the needed variables only, so without secrets.
 */
function createNotify(env: Io['env'], log: Logger): (state: string) => Promise<void> {
  const childEnv = { PATH: env.PATH ?? '/usr/bin:/bin', NOTIFY_SOCKET: env.NOTIFY_SOCKET };
  let hasLoggedFailure = false;
  const run = (state: string) =>
    new Promise<void>((resolve) => {
      const limits = { timeout: notifyTimeoutMs, killSignal: 'SIGKILL' } as const;
      execFile('systemd-notify', [state], { env: childEnv, ...limits }, (error) => {
        if (error !== null && !hasLoggedFailure) {
          hasLoggedFailure = true;
          const reason = error.message.trim();
          log.error({ reason, state }, 'failed to notify systemd; it may restart the service');
        }
        resolve();
      });
    });
  let last = Promise.resolve();
  return (state) => {
    last = last.then(() => run(state));
    return last;
  };
}
