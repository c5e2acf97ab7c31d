/** How HTTPS is spoken here: versions, ciphers and groups (decision 32). */
import { constants, X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/** All of TLS 1.2 and 1.3 that has forward secrecy and authenticates what it encrypts. */
const ciphers = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

const groups = 'X25519:prime256v1:secp384r1';
/** Secret also from those who record it now and have a quantum computer later. */
const groupsWithHybrid = `X25519MLKEM768:${groups}`;

/** For a server, and again for each certificate that it is given later. */
export const tlsSettings = {
  minVersion: 'TLSv1.2',
  ciphers,
  ecdhCurve: knowsHybrid(process.versions.openssl) ? groupsWithHybrid : groups,
  honorCipherOrder: true,
  // No tickets: their key would lie in memory for as long as the program runs, and open what was recorded.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_NO_TICKET,
} as const;

/** OpenSSL before 3.5, which Node 22 has, refuses a list with a group that it does not know. */
function knowsHybrid(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 3 || (major === 3 && minor >= 5);
}

const contexts = new Map<string, SecureContext>();
/** Few processes know more authorities of their own than these. */
const contextsMax = 8;

/**
 * Trusts the authorities in `pems` (one or more certificates each) besides the public ones and the system's.
 * Kept: to read some hundred authorities anew costs more than a handshake.
 */
export function contextTrusting(pems: readonly string[]): SecureContext {
  const key = pems.join('\n');
  const known = contexts.get(key);
  if (known !== undefined) return known;
  const usual = [...getCACertificates('default'), ...getCACertificates('system')];
  const context = createSecureContext({ ca: [...new Set([...usual, ...pems])] });
  if (contexts.size === contextsMax) contexts.clear();
  contexts.set(key, context);
  return context;
}

/** True for one PEM certificate or more, all of them readable. */
export function holdsCertificates(pem: string): boolean {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block)).length > 0;
  } catch {
    return false;
  }
}
