/** Whom a connection of ours trusts: the public authorities, the system's, and one's own. */
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

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
