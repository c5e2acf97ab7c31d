/** Tells systemd how the service is: ready, alive, stopping (sd_notify(3)), with its own tool. */
import { execFile } from 'node:child_process';
import type { Intake, Logger } from '../domain/ports.ts';
import { type Io, pause } from './io.ts';

/** One run of `systemd-notify` may take this long: systemd itself may be busy at boot. */
const notifyTimeoutMs = 10_000;

/** Less than the store's own 30 s, so that a call which nobody answers shows as what it is. */
const storeTimeoutMsMax = 10_000;

interface Watched {
  store: Pick<Intake, 'checkWritable'>;
  log: Logger;
}

/**
 * Says that the receiver is up, and from then on gives a sign of life at half of the
 * watchdog's time (sd_watchdog_enabled(3)), as long as the event loop runs and the store answers.
 * Does nothing when no service manager has asked for it (NOTIFY_SOCKET). `stop` says that the service is stopping, and
 * ends the signs of life.
 */
export function startSystemdNotices({ env, store, log }: Watched & Pick<Io, 'env'>): {
  stop(): void;
} {
  // Not set, or set to nothing: nobody listens.
  if (!env.NOTIFY_SOCKET) return { stop: () => undefined };
  const notify = createNotify(env, log);
  const stopping = new AbortController();
  void notify('READY=1');
  // WATCHDOG_PID is not looked at: the unit lets all of its processes speak (NotifyAccess=all).
  const watchdogMs = Number(env.WATCHDOG_USEC) / 1000;
  const { signal } = stopping;
  if (watchdogMs > 0) void giveSignsOfLife(watchdogMs / 2, { store, log, notify, signal });
  return {
    stop: () => {
      stopping.abort();
      void notify('STOPPING=1');
    },
  };
}

async function giveSignsOfLife(
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
    // A store that was slow once is soon asked again: there is time for several tries.
    waitMs = alive ? intervalMs : intervalMs / 40;
    if (alive) await notify('WATCHDOG=1');
    else log.error({ timeoutMs }, 'the store does not answer; systemd gets no sign of life');
  }
}

/**
 * True when the store says something in time, be it that it cannot write: a new start would not
 * make room on a disk. A refusal may be the end of a call that somebody else began long ago and that
 * was given up, so it counts only when a second call is answered, too.
 */
async function answers(store: Pick<Intake, 'checkWritable'>, timeoutMs: number): Promise<boolean> {
  const ask = async () => {
    const { promise: late, resolve } = Promise.withResolvers<'late'>();
    const timer = setTimeout(resolve, timeoutMs, 'late');
    timer.unref();
    const answer = store.checkWritable().then(
      () => 'writable' as const,
      () => 'refused' as const,
    );
    return Promise.race([answer, late]).finally(() => clearTimeout(timer));
  };
  const first = await ask();
  return (first === 'refused' ? await ask() : first) !== 'late';
}

/**
 * Node cannot open the unix datagram socket that systemd listens on, so its own program does it. One
 * runs at a time, bounded in time; it gets no environment that it does not need, so no secrets.
 */
function createNotify(env: Io['env'], log: Logger): (state: string) => Promise<void> {
  const childEnv = { PATH: env.PATH ?? '/usr/bin:/bin', NOTIFY_SOCKET: env.NOTIFY_SOCKET };
  let toldOfFailure = false;
  const run = (state: string) =>
    new Promise<void>((resolve) => {
      const limits = { timeout: notifyTimeoutMs, killSignal: 'SIGKILL' } as const;
      execFile('systemd-notify', [state], { env: childEnv, ...limits }, (error) => {
        if (error !== null && !toldOfFailure) {
          toldOfFailure = true;
          const reason = error.message.trim();
          log.error({ reason, state }, 'systemd could not be told; it may restart the service');
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
