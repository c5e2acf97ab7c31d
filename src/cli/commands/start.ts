/** `earshot start`: serves the endpoint until it is asked to stop. */
import { Command } from 'commander';
import { readServeConfig, type ServeConfig } from '../../config/read-config.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Io } from '../io.ts';
import { untilAborted } from '../until-aborted.ts';

export function startCommand(io: Io): Command {
  return new Command('start')
    .description('Serve the endpoint: receive notifications and store them.')
    .addHelpText(
      'after',
      `
Settings are environment variables, or lines of a file .env: see docs/configuration.md.
Stops cleanly on SIGTERM or Ctrl-C: what has been answered is on disk.

Examples:
  $ EARSHOT_ENDPOINT_USERNAME=catalogue EARSHOT_ENDPOINT_PASSWORD_FILE=./password \\
    EARSHOT_TLS_CERT=fullchain.pem EARSHOT_TLS_KEY=privkey.pem earshot start
  $ EARSHOT_TLS=off EARSHOT_LISTEN=127.0.0.1:8081 … earshot start      behind a proxy`,
    )
    .action(() => start(io));
}

async function start(io: Io): Promise<void> {
  const config = readServeConfig(io);
  // Loaded when it is asked for: a query next door should not have to load a server.
  const [{ createLogger }, { serve }] = await Promise.all([
    import('../logger.ts'),
    import('../serve.ts'),
  ]);
  const log = createLogger(io, config.logLevel);
  const receiver = await serve(config, log, io);
  announce(config, receiver.url, log);
  await untilAborted(io.signal);
  log.info({ reason: io.signal.reason }, 'stopping: no new connections, finishing what is in hand');
  await receiver.close();
  log.info({}, 'stopped');
}

function announce(config: ServeConfig, url: string, log: Logger): void {
  const { dataDir, publicUrl, certificateFiles } = config;
  if (certificateFiles === null) {
    log.warn(
      {},
      'EARSHOT_TLS=off: this is plain HTTP. Passwords cross the network as they are unless a proxy in front speaks HTTPS',
    );
  }
  const endpoint = `${publicUrl ?? url}/notifications/<name>`;
  log.info({ url, dataDir, endpoint }, 'ready: notifications are taken');
}
