/** `earshot start`: runs the receiver. */

import { execFile } from 'node:child_process';
import { needsEndpoint } from '../admin/settings.ts';
import { registeredSubscriptions } from '../admin/sql.ts';
import { defineCommand } from '../core/cli/command.ts';
import { type Io, pause, untilAborted, within } from '../core/cli/io.ts';
import { loadServed, type StartConfig } from '../core/config/config.ts';
import { checkConsolePassword, checkSecretFiles } from '../core/doctor/steps.ts';
import {
  type Closers,
  createClosers,
  type Job,
  type JobOptions,
  startJob,
} from '../core/host/job.ts';
import { AppError, errorText, isAppError } from '../core/terms/app-error.ts';
import type { Intake, Logger } from '../core/terms/ports.ts';
import type { RunningReceiver } from './serve.ts';

export const startCommand = defineCommand('start', {
  description: 'Run the receiver: accept pushes, read queues, and store notifications.',
  help: `Settings are environment variables or lines of the file .env (see docs/reference/configuration.md).
The receiver also runs these background jobs:
  - deliver notifications to the sinks of earshot.config.ts
  - compare the log with the catalogue and fetch missing notifications
  - write summaries and check for alerts
  - maintain the subscriptions and read the queues of pull subscriptions, if the EARSHOT_ACCOUNT_
    variables are set (for push, also EARSHOT_PUBLIC_URL)
With an account, and without EARSHOT_PUBLIC_URL, EARSHOT_LISTEN and EARSHOT_TLS variables, no public
listener is opened, and no certificate is needed: for pull subscriptions only.
SIGTERM or Ctrl-C stops the receiver. Every acknowledged notification is on disk.

Exit codes: 0 stopped, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot start                                                      with the settings in .env
  $ EARSHOT_TLS_CERT=fullchain.pem EARSHOT_TLS_KEY=privkey.pem earshot start   own certificate
  $ EARSHOT_TLS=off EARSHOT_LISTEN=127.0.0.1:8081 earshot start        behind a proxy`,
  run: (io) => start(io, io.version),
});

/** Timeout of a shutdown, after which the process exits. Shorter than the 30 s of systemd. */
const stopTimeoutMs = 25_000;
/** Time for a start in progress to finish before a shutdown, so that it closes cleanly. */
const startGraceMs = 2_000;

/** Runs until the signal is aborted. `beforeJobs` runs when the receiver answers; its failure stops the receiver. */
export async function start(
  io: Io,
  version: string,
  beforeJobs: (receiver: RunningReceiver) => Promise<void> = async () => {},
): Promise<void> {
  for (const { beforeStart } of io.features) await beforeStart?.(io);
  const hasEndpoint = needsEndpoint(io);
  const config = loadServed(io, hasEndpoint);
  // Loaded on demand: other commands do not need the server.
  const [{ captureConsole, createLogger }, { markServed }, { serve }, { startBackgroundJobs }] =
    await Promise.all([
      import('../core/cli/logger.ts'),
      import('./running-receiver.ts'),
      import('./serve.ts'),
      import('./background.ts'),
    ]);
  const log = createLogger(io, config.logLevel);
  const closers = createClosers();
  const release = captureConsole((text) => log.warn({ text }, 'message of a library'));
  closers.add(release, 'capture of the console');
  const limitStop = () => endInTime(closers, log, io);
  io.signal.addEventListener('abort', limitStop, { once: true });
  const startedAtUs = io.nowUs();
  const mark = await markServed(config.dataDir, log);
  closers.add(mark.stop, 'mark of the data directory');
  let jobs = Promise.resolve();
  try {
    await warnOfOpenFiles(io, log);
    const receiver = await serve(config, log, io);
    closers.add(receiver.close, 'receiver');
    const { listen, publicUrl = null } = config;
    const { consoleUrl } = receiver;
    await mark.describe({ pid: io.pid, startedAtUs, publicUrl, listen, consoleUrl });
    announce(config, receiver, log);
    const systemd = startSystemdNotices({ env: io.env, store: receiver.store, log });
    closers.add(() => systemd.stop(), 'systemd notices');
    await beforeJobs(receiver);
    const starting = untilReadable(receiver, log, io).then((isReadable) =>
      isReadable
        ? startBackgroundJobs({ receiver, settings: config, version, io, log }, closers)
        : undefined,
    );
    // If a shutdown begins during the start, the part that is being started is closed afterwards.
    jobs = starting.catch(reportFailedJob(log, io)).then(() => {
      return io.signal.aborted ? closers.closeAll() : undefined;
    });
    await untilStarted(jobs, io);
    await untilAborted(io.signal);
    log.info(
      { reason: io.signal.reason },
      'shutting down: background jobs, then new connections, then open requests',
    );
  } catch (error) {
    limitStop();
    await closers.closeAll().catch((err: unknown) => log.error({ err }, 'a part failed to close'));
    throw error;
  }
  await closers.closeAll();
  await untilStarted(jobs, io);
  log.info({}, 'stopped');
}

/** Interval of the attempts to read the log before the background jobs start. */
const readRetryMs = 1_000;

/**
 * Resolves with true when the log can be read, with false after an abort. Without free disk space, SQLite may be unable
 * to create its shared memory file; the receiver answers 503 meanwhile.
 */
async function untilReadable(
  { store }: RunningReceiver,
  log: Logger,
  { signal }: Pick<Io, 'signal'>,
): Promise<boolean> {
  let isLogged = false;
  while (!signal.aborted) {
    try {
      await store.lastPosition();
      return true;
    } catch (error) {
      if (!isAppError(error, 'unavailable')) throw error;
      if (!isLogged) log.error({ reason: errorText(error) }, 'the log cannot be read');
      isLogged = true;
    }
    await pause(readRetryMs, signal);
  }
  return false;
}

/** Logs the failed start of a background job, and throws it with advice; not during a shutdown. */
function reportFailedJob(log: Logger, { signal }: Pick<Io, 'signal'>): (error: unknown) => void {
  return (error) => {
    if (signal.aborted) return;
    log.error({ err: error }, 'a background job failed to start; shutting down');
    const reason = errorText(error);
    throw new AppError(
      'unavailable',
      `A background job failed to start: ${reason}. The receiver was closed.`,
      { advice: 'Fix the cause, then run `earshot start` again.', cause: error },
    );
  };
}

/** Resolves when everything has started, or soon after a shutdown was requested. */
async function untilStarted(starting: Promise<void>, { signal }: Pick<Io, 'signal'>) {
  // A running timer would delay the end of the process.
  const enough = new AbortController();
  const late = untilAborted(signal).then(() => pause(startGraceMs, enough.signal));
  await Promise.race([starting, late]).finally(() => enough.abort());
}

/** Exits if the parts do not close in time. Does not prevent an earlier exit. */
function endInTime(closers: Pick<Closers, 'open'>, log: Logger, { exit }: Pick<Io, 'exit'>): void {
  const timer = setTimeout(() => {
    const seconds = stopTimeoutMs / 1_000;
    log.error({ open: closers.open(), seconds }, 'shutdown timed out; ending the process');
    exit(1);
  }, stopTimeoutMs);
  timer.unref();
}

async function warnOfOpenFiles(io: Io, log: Logger): Promise<void> {
  for (const { level, text, nextStep } of await checkSecretFiles(io)) {
    if (level !== 'ok') log.warn({ advice: nextStep }, text);
  }
}

function announce(config: StartConfig, receiver: RunningReceiver, log: Logger): void {
  const { url, consoleUrl } = receiver;
  const { dataDir, console } = config;
  if (url === null) {
    const reason =
      registeredSubscriptions(dataDir).length === 0
        ? 'no subscription is registered yet: `earshot setup`, or `earshot register --pull`'
        : 'neither EARSHOT_PUBLIC_URL nor a variable of the listener is set';
    log.info({ dataDir, consoleUrl, reason }, 'ready to read queues, without a public listener');
  } else announceEndpoint(config, receiver, log);
  if (console?.password !== undefined && consoleUrl !== null) {
    log.info({}, 'the private listener uses plain HTTP: use its password in trusted networks only');
    for (const { nextStep, text } of checkConsolePassword(console.password))
      log.warn({ advice: nextStep }, text);
  }
  if (consoleUrl !== null) log.info({ page: `${consoleUrl}/` }, 'serving the web page');
}

function announceEndpoint(config: StartConfig, receiver: RunningReceiver, log: Logger): void {
  const { url, consoleUrl, hasCertificate } = receiver;
  const { dataDir, publicUrl, trustedProxies } = config;
  const isPlain = url?.startsWith('http:') === true;
  const warn = (message: string) => log.warn({}, message);
  if (isPlain) {
    warn('EARSHOT_TLS=off: passwords are sent unencrypted unless a proxy in front uses HTTPS');
  }
  if (isPlain && trustedProxies.length === 0) {
    warn(
      'EARSHOT_TRUSTED_PROXIES is not set: behind a proxy, all clients share one limit of failed logins. Set the variable to the address of the proxy',
    );
  }
  const endpoint = `${publicUrl ?? url}/notifications/<name>`;
  const state = hasCertificate
    ? 'ready to receive notifications'
    : 'waiting for the certificate; notifications are received after it is issued';
  log.info({ url, dataDir, endpoint, consoleUrl }, state);
}

/** Timeout of `systemd-notify`; long, because systemd may be busy at boot. */
const notifyTimeoutMs = 10_000;

/** Below the store's own timeout of 30 s, so that an unanswered call is detected as such. */
const storeTimeoutMsMax = 10_000;

/**
 * Reports that the receiver is up, then sends heartbeats at half of the watchdog's interval (sd_watchdog_enabled(3)),
 * as long as the event loop runs and the store answers. Does nothing without NOTIFY_SOCKET. `stop` reports that the
 * service is stopping, and ends the heartbeats.
 */
export function startSystemdNotices({
  env,
  store,
  log,
}: { store: Pick<Intake, 'checkWritable'>; log: Logger } & Pick<Io, 'env'>): Job {
  // Not set, or empty: no service manager.
  if (!env.NOTIFY_SOCKET) return { stop: async () => undefined };
  const notify = createNotify(env, log);
  void notify('READY=1');
  // Ignores WATCHDOG_PID: the unit accepts messages of all its processes (NotifyAccess=all).
  const intervalMs = Number(env.WATCHDOG_USEC) / 2_000;
  const timeoutMs = Math.min(storeTimeoutMsMax, intervalMs / 4);
  // After a slow answer, checks again soon: there is time for several attempts.
  const retryMs = intervalMs / 40;
  const heartbeat: JobOptions = {
    every: { firstMs: intervalMs, intervalMs, retryMs, retryMsMax: retryMs },
    run: async () => {
      const ask = () =>
        store.checkWritable().then(
          () => true,
          () => false,
        );
      // A refusal is an answer: a restart does not free disk space. It may end an older call that timed out, so it
      // counts only if a second call is answered, too.
      const answer = ask().then((isWritable) => isWritable || ask());
      await within(timeoutMs, answer, () => {
        throw new AppError('unavailable', `No answer within ${timeoutMs} ms.`);
      });
      await notify('WATCHDOG=1');
    },
    failed: 'store does not answer; heartbeat to systemd skipped',
    stopGraceMs: 0,
  };
  const job = intervalMs > 0 ? startJob(heartbeat, { pause, random: () => 0.5, log }) : null;
  return {
    stop: async () => {
      await job?.stop();
      void notify('STOPPING=1');
    },
  };
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
