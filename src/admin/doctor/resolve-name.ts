/** Finds the addresses of a name as the catalogue would find them. */
import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';

export interface ResolvedName {
  addresses: readonly string[];
  /** `dns`: as others see it. `hosts`: known to this machine alone. `address`: it was one already. */
  source: 'dns' | 'hosts' | 'address';
}

/** Rejects for a name that cannot be resolved. */
export type ResolveName = (host: string) => Promise<ResolvedName>;

const timeoutMs = 3_000;

/**
 * Asks DNS, as others do, and this machine's own resolver where that knows nothing: a machine's own
 * name often stands in its hosts file with a loopback address.
 */
export async function resolveName(host: string): Promise<ResolvedName> {
  if (isIP(host) !== 0) return { addresses: [host], source: 'address' };
  // Such names are never asked of DNS (RFC 6761, 6.3).
  const isLocal = /(^|\.)localhost$/.test(host);
  const inDns = isLocal ? { addresses: [], denied: true } : await askDns(host);
  if (inDns.addresses.length > 0) return { addresses: inDns.addresses, source: 'dns' };
  const local = (await lookup(host, { all: true })).map(({ address }) => address);
  return { addresses: local, source: inDns.denied ? 'hosts' : 'dns' };
}

/** `denied`: a server says that there is none; where none could be asked, that is not known. */
async function askDns(host: string): Promise<{ addresses: string[]; denied: boolean }> {
  const resolver = new Resolver({ timeout: timeoutMs, tries: 2 });
  const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  const addresses = answers.flatMap((answer) =>
    answer.status === 'fulfilled' ? answer.value : [],
  );
  const denied = answers.some((answer) => answer.status === 'rejected' && isDenial(answer.reason));
  return { addresses, denied };
}

function isDenial(reason: unknown): boolean {
  const code = reason instanceof Error && 'code' in reason ? reason.code : undefined;
  return code === 'ENOTFOUND' || code === 'ENODATA';
}
