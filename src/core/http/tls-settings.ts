/** TLS settings: versions, ciphers and groups (decision 32). */
import { constants, X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/** Ciphers of TLS 1.2 and 1.3 with forward secrecy and authenticated encryption. */
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
/** Includes a hybrid group, which protects recorded traffic from future quantum computers. */
const groupsWithHybrid = `X25519MLKEM768:${groups}`;

/** Settings of a server; needed again for each new certificate. */
export const tlsSettings = {
  minVersion: 'TLSv1.2',
  ciphers,
  ecdhCurve: knowsHybrid(process.versions.openssl) ? groupsWithHybrid : groups,
  honorCipherOrder: true,
  // No tickets: their key stays in memory as long as the program runs, and could decrypt recorded traffic.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_NO_TICKET,
} as const;

/** OpenSSL before 3.5, as in Node 22, refuses a list with an unknown group. */
function knowsHybrid(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 3 || (major === 3 && minor >= 5);
}

const contexts = new Map<string, WeakRef<SecureContext>>();
/** Maximum number of cached contexts; processes rarely use more. */
const contextsMax = 8;

/**
 * Trusts the authorities in `pems` (one or more certificates each) in addition to the public and the system's ones.
 * Cached while it is in use: parsing hundreds of authorities costs more than a handshake, and takes 10 MB.
 */
export function contextTrusting(pems: readonly string[]): SecureContext {
  const key = pems.join('\n');
  const known = contexts.get(key)?.deref();
  if (known !== undefined) return known;
  const usual = [...getCACertificates('default'), ...getCACertificates('system')];
  const context = createSecureContext({ ca: [...new Set([...usual, ...pems])] });
  if (contexts.size === contextsMax) contexts.clear();
  contexts.set(key, new WeakRef(context));
  return context;
}

/** Checks for at least one PEM certificate, all of them valid. */
export function holdsCertificates(pem: string): boolean {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block)).length > 0;
  } catch {
    return false;
  }
}
