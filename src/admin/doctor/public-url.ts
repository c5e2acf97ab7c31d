/** The doctor's checks of the public URL: its form, its name, and whether its address is public. */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Finding } from '../../domain/finding.ts';
import type { ResolvedName, ResolveName } from './resolve-name.ts';

const setPublicUrl =
  'Set EARSHOT_PUBLIC_URL to the https address under which the catalogue reaches the receiver, with the port if it is not 443.';

/** `publicUrl` is an origin, or undefined where none is set, or none that can be read. */
export function checkPublicUrl(publicUrl: string | undefined): Finding[] {
  const check = 'public URL';
  if (publicUrl === undefined) {
    const message = 'There is no EARSHOT_PUBLIC_URL that can be used.';
    return [{ check, state: 'fail', message, advice: setPublicUrl }];
  }
  const { protocol, hostname, port } = new URL(publicUrl);
  if (protocol !== 'https:') {
    const message = `${publicUrl} is not https, and the catalogue delivers to nothing else.`;
    return [{ check, state: 'fail', message, advice: setPublicUrl }];
  }
  if (isIP(withoutBrackets(hostname)) !== 0) {
    const message = `${publicUrl} has an address where the catalogue asks for a name.`;
    const advice = 'Give the machine a name at a DNS provider, and use it in EARSHOT_PUBLIC_URL.';
    return [{ check, state: 'warn', message, advice }];
  }
  return [{ check, state: 'pass', message: `${publicUrl} is https, on port ${port || '443'}.` }];
}

/** Resolves the name of a URL; `addresses` is empty when that fails. */
export async function checkName(options: {
  publicUrl: string;
  resolveName: ResolveName;
}): Promise<{ findings: Finding[]; addresses: readonly string[] }> {
  const check = 'name';
  const host = withoutBrackets(new URL(options.publicUrl).hostname);
  const nothing: ResolvedName = { addresses: [], source: 'dns' };
  const { addresses, source } = await options.resolveName(host).catch(() => nothing);
  const list = addresses.join(', ');
  if (addresses.length === 0) {
    const message = `${host} does not resolve to an address.`;
    const advice = `Look for a typing error, or make an A record for it at your DNS provider; see for yourself: dig ${host}`;
    return { findings: [{ check, state: 'fail', message, advice }], addresses };
  }
  if (source === 'hosts') {
    const message = `${host} resolves to ${list} on this machine alone: DNS does not know it.`;
    // Never known to DNS (RFC 6761). Another name may have a loopback address here and be a real one: Debian's own.
    const isLocal = /(^|\.)localhost$/.test(host);
    const advice = isLocal
      ? 'Fine for a test; the catalogue cannot resolve it.'
      : 'Make an A record for it at your DNS provider: the catalogue asks DNS.';
    return { findings: [{ check, state: 'warn', message, advice }], addresses };
  }
  const message =
    source === 'address' ? `${host} is an address already.` : `${host} resolves to ${list}.`;
  return { findings: [{ check, state: 'pass', message }], addresses };
}

/** With `isTest` an address that the catalogue cannot reach is only warned of. */
export function checkAddresses(options: {
  addresses: readonly string[];
  isTest: boolean;
}): Finding[] {
  const check = 'public address';
  const { addresses, isTest } = options;
  const hidden = addresses.filter((address) => rangeOf(address) !== 'unicast');
  if (hidden.length > 0) {
    const list = hidden.map((address) => `${address} (${wordsFor(rangeOf(address))})`).join(', ');
    const message = `The Internet has no way to ${list}.`;
    const advice = isTest
      ? 'Fine for a test; the catalogue cannot reach it.'
      : 'Let the name point to the public address of this machine alone; if DNS answers otherwise inside your network, ask from outside: dig @9.9.9.9 NAME';
    const some = hidden.length < addresses.length;
    return [{ check, state: isTest || some ? 'warn' : 'fail', message, advice }];
  }
  if (addresses.every((address) => isIP(address) === 6)) {
    const message = 'It is IPv6 alone, and whether the catalogue delivers over IPv6 is not known.';
    return [{ check, state: 'warn', message, advice: 'Add an IPv4 address: an A record.' }];
  }
  return [{ check, state: 'pass', message: `${addresses.join(', ')} can be routed to.` }];
}

/** The registries of IANA, as ipaddr.js has them; `unicast` is what is left: public addresses. */
function rangeOf(address: string): string {
  return ipaddr.process(address).range();
}

/** `carrierGradeNat` -> `carrier grade nat`. */
function wordsFor(range: string): string {
  return range.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}
