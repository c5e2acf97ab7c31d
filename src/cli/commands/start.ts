/** `earshot start`: serves the endpoint until it is asked to stop. */
import { loadConfig, type ServeConfig, startSections } from '../../config/config.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Closers } from '../closers.ts';
import { defineCommand } from '../command.ts';
import { type Io, pause, untilAborted } from '../io.ts';
import type { RunningReceiver } from '../start/serve.ts';
import { startSystemdNotices } from '../systemd.ts';

export const startCommand = defineCommand('start', {
  description: 'Serve the endpoint: receive notifications and store them.',
  help: `Settings are environment variables, or lines of a file .env: see docs/reference/configuration.md.
With the account's variables and EARSHOT_PUBLIC_URL it also maintains what \`register\` registered.
It compares the log with the catalogue, fetches what no push told of, watches for what goes wrong,
and hands notifications over to the sinks of earshot.config.ts.
Stops cleanly on SIGTERM or Ctrl-C: what has been answered is on disk.

Examples:
  $ earshot start
  $ EARSHOT_TLS_CERT=fullchain.pem EARSHOT_TLS_KEY=privkey.pem earshot start
  $ EARSHOT_TLS=off EARSHOT_LISTEN=127.0.0.1:8081 … earshot start      behind a proxy`,
  run: (io) => start(io, io.version),
});

/** From the request to stop, or a failed start, until the process is ended whatever is open. systemd waits for 30 s. */
const stopTimeoutMs = 25_000;
/** A start that is under way when the program is asked to stop may finish for so long: then it closes cleanly. */
const startGraceMs = 2_000;

/** Serves until the signal is aborted. `beforeJobs` runs when the receiver answers; its failure ends the receiver. */
export async function start(
  io: Io,
  version: string,
  beforeJobs: (receiver: RunningReceiver) => Promise<void> = async () => {},
): Promise<void> {
  const config = loadConfig(io, startSections);
  // Loaded when it is asked for: a query next door should not have to load a server.
  const [
    { createLogger },
    { markServed },
    { removeLeftovers },
    { serve },
    { startBackgroundJobs },
    { createClosers },
  ] = await Promise.all([
    import('../logger.ts'),
    import('../running-receiver.ts'),
    import('../../store/leftovers.ts'),
    import('../start/serve.ts'),
    import('../start/background.ts'),
    import('../closers.ts'),
  ]);
  const log = createLogger(io, config.logLevel);
  const closers = createClosers();
  const limitStop = () => endInTime(closers, log, io);
  io.signal.addEventListener('abort', limitStop, { once: true });
  const mark = await markServed(config, io, log);
  closers.add(mark.stop, 'mark of the data directory');
  let jobs = Promise.resolve();
  try {
    await warnOfOpenFiles(io, log);
    await removeLeftovers(config.dataDir);
    const receiver = await serve(config, log, io);
    closers.add(receiver.close, 'receiver');
    announce(config, receiver, log);
    const systemd = startSystemdNotices({ env: io.env, store: receiver.store, log });
    closers.add(() => systemd.stop(), 'systemd notices');
    await beforeJobs(receiver);
    const starting = startBackgroundJobs(receiver, { ...config, version }, { log, io, closers });
    // A start that is still under way when the program is asked to stop ends at its next part, which is closed then.
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

/** Logs why a background job failed to start, and throws it as an error that says what to do; not during a shutdown. */
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

/** Resolves when everything has started, or soon after the program was asked to stop. */
async function untilStarted(starting: Promise<void>, { signal }: Pick<Io, 'signal'>) {
  const aborted = untilAborted(signal).then(() =>
    pause(startGraceMs, new AbortController().signal),
  );
  await Promise.race([starting, aborted]);
}

/** Ends the process when parts do not close in time. Does not keep the process from ending earlier. */
function endInTime(closers: Pick<Closers, 'open'>, log: Logger, { exit }: Pick<Io, 'exit'>): void {
  const timer = setTimeout(() => {
    const seconds = stopTimeoutMs / 1_000;
    log.error({ open: closers.open(), seconds }, 'not closed in time; ending the process');
    exit(1);
  }, stopTimeoutMs);
  timer.unref();
}

async function warnOfOpenFiles(io: Io, log: Logger): Promise<void> {
  const { checkSecretFiles } = await import('../../config/secret-file-checks.ts');
  for (const { state, message, advice } of await checkSecretFiles(io)) {
    if (state === 'warn') log.warn({ advice }, message);
  }
}

function announce(config: ServeConfig, receiver: RunningReceiver, log: Logger): void {
  const { url, consoleUrl, hasCertificate } = receiver;
  const { dataDir, publicUrl, tls, trustedProxies, console } = config;
  const warn = (message: string) => log.warn({}, message);
  if (tls.kind === 'off') {
    warn(
      'EARSHOT_TLS=off: this is plain HTTP. Passwords cross the network as they are unless a proxy in front speaks HTTPS',
    );
  }
  if (tls.kind === 'off' && trustedProxies.length === 0) {
    warn(
      'EARSHOT_TRUSTED_PROXIES is not set: behind a proxy all clients look like one, and share one limit of failed logins. Set it to the address of the proxy',
    );
  }
  if (console?.password !== undefined && consoleUrl !== null) {
    log.info(
      {},
      'the private listener speaks plain HTTP: let its password cross no foreign network',
    );
  }
  const endpoint = `${publicUrl ?? url}/notifications/<name>`;
  const state = hasCertificate
    ? 'ready: notifications are taken'
    : 'ready, but for the certificate: notifications are taken as soon as there is one';
  log.info({ url, dataDir, endpoint, consoleUrl }, state);
}
