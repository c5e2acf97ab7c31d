/** Says in plain words why a service could not be asked. */
import { UnusableAnswer } from './bounded-fetch.ts';

const reasons: readonly [codes: RegExp, reason: string][] = [
  [/^(ENOTFOUND|EAI_AGAIN|EAI_NODATA|EAI_NONAME)$/, 'its name cannot be resolved'],
  [/^ECONNREFUSED$/, 'the connection was refused'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET|ECONNABORTED)$/, 'the connection broke'],
  [/^(EHOSTUNREACH|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL)$/, 'there is no way to it in the network'],
  [/^(ETIMEDOUT|UND_ERR_\w*TIMEOUT)$/, 'it did not answer in time'],
  [
    // Node's and OpenSSL's names for certificates and handshakes.
    /^(CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_|INVALID_CA|EPROTO)/,
    'no trusted HTTPS connection could be made, perhaps for a proxy on the way or a wrong clock here',
  ],
  [/^UND_ERR_/, 'it does not speak HTTP as it should'],
];

/** Errors that Node gives no code. */
const namedReasons: Readonly<Record<string, string>> = {
  TimeoutError: 'it did not answer in time',
  HTTPParserError: 'it does not speak HTTP as it should',
};

/** Why a service could not be asked, as facts of an error. */
export interface NetworkFacts extends Record<string, unknown> {
  /** As `networkFault` gives it. */
  reason: string;
  /** Such as `ECONNREFUSED`; null where Node gives none. */
  networkCode: string | null;
}

/**
 * One sentence without its end, such as "the connection was refused (ECONNREFUSED)". It never holds
 * the error's own text, which may quote a header and the token in it.
 */
export function networkFault(error: unknown): string {
  return networkFacts(error).reason;
}

export function networkFacts(error: unknown): NetworkFacts {
  for (const cause of causesOf(error)) {
    if (cause instanceof UnusableAnswer) return { reason: cause.message, networkCode: null };
    const named = namedReasons[cause.name];
    if (named !== undefined) return { reason: named, networkCode: null };
    const code = 'code' in cause ? String(cause.code) : '';
    if (!/^[A-Z][A-Z0-9_]{1,60}$/.test(code)) continue;
    const known = reasons.find(([codes]) => codes.test(code));
    return { reason: `${known?.[1] ?? 'the connection failed'} (${code})`, networkCode: code };
  }
  return { reason: 'the connection failed', networkCode: null };
}

function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  for (let next = error; next instanceof Error && causes.length < 8; next = next.cause) {
    causes.push(next);
  }
  return causes;
}
