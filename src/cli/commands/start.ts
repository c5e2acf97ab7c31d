/** `earshot start`: serves the endpoint until it is asked to stop. */
import { Command } from 'commander';
import {
  type AccountConfig,
  type CompleteAccountConfig,
  completeAccountConfig,
  readAccountConfig,
} from '../../config/account-config.ts';
import { readBoth, readServeConfig, type ServeConfig } from '../../config/read-config.ts';
import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import { readSummaryConfig } from '../../config/summary-config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Io } from '../io.ts';
import type { MaintenanceLoop } from '../maintenance-loop.ts';
import type { RunningReceiver } from '../serve.ts';
import { startSystemdNotices } from '../systemd.ts';
import { untilAborted } from '../until-aborted.ts';

export function startCommand(io: Io): Command {
  return new Command('start')
    .description('Serve the endpoint: receive notifications and store them.')
    .addHelpText(
      'after',
      `
Settings are environment variables, or lines of a file .env: see docs/configuration.md.
With the account's variables and EARSHOT_PUBLIC_URL it also maintains what \`register\` registered.
Stops cleanly on SIGTERM or Ctrl-C: what has been answered is on disk.

Examples:
  $ EARSHOT_ENDPOINT_USERNAME=catalogue EARSHOT_ENDPOINT_PASSWORD_FILE=./password \\
    EARSHOT_TLS_CERT=fullchain.pem EARSHOT_TLS_KEY=privkey.pem earshot start
  $ EARSHOT_TLS=off EARSHOT_LISTEN=127.0.0.1:8081 … earshot start      behind a proxy`,
    )
    .action(() => start(io));
}

async function start(io: Io): Promise<void> {
  const [[config, account], summary] = readBoth(
    () =>
      readBoth(
        () => readServeConfig(io),
        () => readAccountConfig(io),
      ),
    () => readSummaryConfig(io),
  );
  // Loaded when it is asked for: a query next door should not have to load a server.
  const [{ createLogger }, { serve }, { serveSummaries }] = await Promise.all([
    import('../logger.ts'),
    import('../serve.ts'),
    import('../summaries/serve-summaries.ts'),
  ]);
  const log = createLogger(io, config.logLevel);
  const receiver = await serve(config, log, io);
  announce(config, receiver, log);
  const systemd = startSystemdNotices({ env: io.env, store: receiver.store, log });
  const maintenance = await maintainBeside(receiver, account, log, io);
  const { dataDir, index } = config;
  const summaries = await serveSummaries(receiver, { ...summary, dataDir, index }, log, io);
  await untilAborted(io.signal);
  log.info({ reason: io.signal.reason }, 'stopping: no new connections, finishing what is in hand');
  systemd.stop();
  await summaries?.stop();
  await maintenance?.stop();
  await receiver.close();
  log.info({}, 'stopped');
}

/** Starts maintenance when there is an account to maintain; says so when there is not. */
async function maintainBeside(
  { store }: RunningReceiver,
  config: AccountConfig,
  log: Logger,
  io: Io,
): Promise<MaintenanceLoop | undefined> {
  const complete = completeAccountConfig(config);
  const reason = 'missing' in complete ? complete.missing.join(' ') : shortLivedReason(complete);
  if ('missing' in complete || reason !== null) {
    log.info({ reason }, 'maintenance of the subscriptions is off');
    return undefined;
  }
  await loadSubscriptionsFile(io.workingDir).catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error;
    const { message: reason, details } = error;
    log.error({ reason, details }, 'maintenance cannot work before this is put right');
  });
  const { maintenanceRound, startMaintenance } = await import('../maintenance-loop.ts');
  const { random } = io;
  return startMaintenance({ round: () => maintenanceRound(complete, store, io), log, random });
}

/** Why maintenance cannot live on what is configured; null when it can. */
function shortLivedReason({ account }: CompleteAccountConfig): string | null {
  if (account.kind === 'token') {
    return 'EARSHOT_ACCESS_TOKEN ends after minutes. Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD.';
  }
  if (account.totp !== undefined && /^\d{6}$/.test(account.totp)) {
    return 'EARSHOT_ACCOUNT_TOTP is a code, which is good once. Set it to the shared secret.';
  }
  return null;
}

function announce(config: ServeConfig, receiver: RunningReceiver, log: Logger): void {
  const { url, consoleUrl, hasCertificate } = receiver;
  const { dataDir, publicUrl, tls, trustedProxies, console } = config;
  if (tls.kind === 'off') {
    log.warn(
      {},
      'EARSHOT_TLS=off: this is plain HTTP. Passwords cross the network as they are unless a proxy in front speaks HTTPS',
    );
  }
  if (tls.kind === 'off' && trustedProxies.length === 0) {
    log.warn(
      {},
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
