/** `earshot health`: asks the receiver on this machine whether it takes notifications. */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Command } from 'commander';
import { type HealthConfig, readHealthConfig } from '../../config/health-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { errorCodeOf } from '../../domain/error-code.ts';
import { hostInUrl, loopbackOf } from '../../http/listen-address.ts';
import type { Io } from '../io.ts';

/** More than a commit to a slow disk takes. */
const timeoutMs = 5_000;

export function healthCommand(io: Io): Command {
  return new Command('health')
    .description('Ask the receiver on this machine whether it can take a notification now.')
    .addHelpText(
      'after',
      `
For health checks of containers and for scripts; \`earshot doctor\` looks at everything else. Asks
where EARSHOT_LISTEN says, with the endpoint credentials, and needs the settings of the receiver.
Over HTTPS the certificate is not checked: the receiver is on this very machine, and asked by its
address. The receiver answers only after a commit to the disk that is no older than a few seconds.

Exit codes: 0 it can, 1 it cannot (the reason is on standard error), 2 wrong usage or configuration.

Example:
  $ earshot health`,
    )
    .action(() => health(io));
}

async function health(io: Io): Promise<void> {
  const config = readHealthConfig(io);
  const url = urlOf(config);
  const timeout = AbortSignal.timeout(timeoutMs);
  let status: number;
  try {
    status = await statusOf(url, config, AbortSignal.any([io.signal, timeout]));
  } catch (error) {
    const late = `it did not answer within ${timeoutMs / 1000} s. Look into its log`;
    throw unhealthy(url, timeout.aborted ? late : reasonOf(error));
  }
  if (status !== 200) throw unhealthy(url, statusReasons[status] ?? unexpected(status));
  io.stdout.write(`The receiver takes notifications (${url.origin}).\n`);
}

/** Resolves with the status of a GET with the credentials. */
function statusOf(
  url: URL,
  { secure, credentials }: HealthConfig,
  signal: AbortSignal,
): Promise<number> {
  const { username, password } = credentials;
  const login = Buffer.from(`${username}:${password}`, 'utf8').toString('base64');
  const options = {
    headers: { Authorization: `Basic ${login}` },
    agent: false,
    rejectUnauthorized: false,
    signal,
  };
  return new Promise((resolve, reject) => {
    const sent = (secure ? requestHttps : requestHttp)(url, options, (response) => {
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** A listener on all addresses is asked on loopback. */
function urlOf({ listen: { host, port }, secure }: HealthConfig): URL {
  const address = `${hostInUrl(loopbackOf(host))}:${port}`;
  return new URL(`${secure ? 'https' : 'http'}://${address}/notifications`);
}

const statusReasons: Readonly<Record<number, string>> = {
  401: 'it accepts other credentials. Run this with the settings of the receiver',
  429: 'it accepts other credentials. Run this with the settings of the receiver',
  503: 'it cannot store anything. Its log tells why; `earshot doctor` looks at the disk',
};

function unexpected(status: number): string {
  return `what answers there (HTTP status ${status}) is not the receiver. Check EARSHOT_LISTEN`;
}

function reasonOf(error: unknown): string {
  const code = errorCodeOf(error);
  if (code === 'ECONNREFUSED') return 'nothing listens there. Start it, or check EARSHOT_LISTEN';
  if (/^(EPROTO|ERR_SSL_|ERR_TLS_)/.test(code)) {
    return `no HTTPS there (${code}): it has no certificate yet, or EARSHOT_TLS is another one here. Look into its log`;
  }
  return `the connection failed (${code}). Check EARSHOT_LISTEN and EARSHOT_TLS, and look into its log`;
}

function unhealthy(url: URL, reason: string): AppError {
  return new AppError(
    'unavailable',
    `The receiver takes no notifications (${url.origin}): ${reason}.`,
  );
}
