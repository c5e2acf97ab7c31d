/** Asks the receiver on this machine whether it takes notifications, as the catalogue would. */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { HealthConfig } from '../config/health-config.ts';
import { errorCodeOf } from '../domain/error-code.ts';
import { hostInUrl, loopbackOf } from '../http/network-address.ts';

/** More than a commit to a slow disk takes. */
const timeoutMs = 5_000;

export interface AskedReceiver {
  /** `absent`: nothing listens there. `unclear`: something does that is not the receiver we know. */
  state: 'takes' | 'refuses' | 'absent' | 'unclear';
  origin: string;
  /** Why it takes none, and what to do: the rest of a sentence, without its full stop. Blank when it takes them. */
  reason: string;
}

/** Resolves in any case. */
export async function askReceiver(
  config: HealthConfig,
  signal: AbortSignal,
): Promise<AskedReceiver> {
  const url = urlOf(config);
  const { origin } = url;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const status = await statusOf(url, config, AbortSignal.any([signal, timeout]));
    return { origin, ...meanings(status) };
  } catch (error) {
    if (timeout.aborted) {
      const reason = `it did not answer within ${timeoutMs / 1000} s. Look into its log`;
      return { state: 'refuses', origin, reason };
    }
    return { origin, ...faultIn(error) };
  }
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

type Answer = Omit<AskedReceiver, 'origin'>;

function meanings(status: number): Answer {
  switch (status) {
    case 200:
      return { state: 'takes', reason: '' };
    case 503: {
      const reason =
        'it cannot store anything. Its log tells why; `earshot doctor` looks at the disk';
      return { state: 'refuses', reason };
    }
    case 401:
    case 429: {
      const reason = 'it accepts other credentials. Run this with the settings of the receiver';
      return { state: 'unclear', reason };
    }
    default: {
      const reason = `what answers there (HTTP status ${status}) is not the receiver. Check EARSHOT_LISTEN`;
      return { state: 'unclear', reason };
    }
  }
}

function faultIn(error: unknown): Answer {
  const code = errorCodeOf(error);
  if (code === 'ECONNREFUSED') {
    const reason = 'nothing listens there. Start it, or check EARSHOT_LISTEN';
    return { state: 'absent', reason };
  }
  if (/^(EPROTO|ERR_SSL_|ERR_TLS_)/.test(code)) {
    const reason = `no HTTPS there (${code}): it has no certificate yet, or EARSHOT_TLS is another one here. Look into its log`;
    return { state: 'refuses', reason };
  }
  const reason = `the connection failed (${code}). Check EARSHOT_LISTEN and EARSHOT_TLS, and look into its log`;
  return { state: 'unclear', reason };
}
