/** The doctor's checks of the public URL: its form, its name, and whether its address is public. */

import { lookup, Resolver } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { wholeDays } from '../domain/dates.ts';
import type { Finding } from '../domain/finding.ts';
import type { ProbeEndpoint, ProbeReport } from './endpoint-probe.ts';
import { by, faultOf, probeStages, type SeenTls, timeoutCode } from './probe-fault.ts';
import type { EndpointCredentials } from './subscription-client.ts';

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

export interface ResolvedName {
  addresses: readonly string[];
  /** `dns`: as others see it. `hosts`: known to this machine alone. `address`: it was one already. */
  source: 'dns' | 'hosts' | 'address';
}

/** Rejects for a name that cannot be resolved. */
type ResolveName = (host: string) => Promise<ResolvedName>;

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

/**
 * Compares what the name resolves to with the addresses of this machine's interfaces. Behind NAT, where
 * those are private, the comparison says nothing, and the checks that knock tell more.
 */
export function checkThisHost(options: {
  addresses: readonly string[];
  localAddresses: readonly string[];
}): Finding[] {
  const check = 'this host';
  const { addresses, localAddresses } = options;
  const local = localAddresses.map((address) => ipaddr.process(address));
  const isLocal = (address: string) =>
    local.some((own) => own.toString() === ipaddr.process(address).toString());
  const elsewhere = addresses.filter((address) => !isLocal(address));
  if (elsewhere.length === 0) {
    return [{ check, state: 'pass', message: 'The name leads to an address of this machine.' }];
  }
  // Of each kind for itself: a forgotten AAAA record is where authorities look first.
  const compared = elsewhere.filter((address) =>
    local.some((own) => own.kind() === ipaddr.process(address).kind() && own.range() === 'unicast'),
  );
  if (compared.length === 0) {
    const message = `${elsewhere.join(', ')} is no address of this machine, which has only private ones: it may be behind NAT.`;
    return [{ check, state: 'pass', message }];
  }
  const own = local.filter((address) => address.range() === 'unicast').join(', ');
  return [
    {
      check,
      state: 'warn',
      message: `The name leads to ${compared.join(', ')}; this machine has ${own}.`,
      advice:
        'If a load balancer or NAT leads from there to here, all is well. Else correct the A and AAAA records of the name.',
    },
  ];
}

const timeoutDefaultMs = 10_000;

/** Opens one TCP connection to the host and port of a URL, and closes it. */
export async function checkPort(options: {
  publicUrl: string;
  timeoutMs?: number;
}): Promise<Finding[]> {
  const check = 'port';
  const { publicUrl, timeoutMs = timeoutDefaultMs } = options;
  const url = new URL(publicUrl);
  const host = withoutBrackets(url.hostname);
  const port = url.port || '443';
  const failure = await connectionFailure(host, Number(port), timeoutMs);
  if (failure === null) {
    const message = `Port ${port} takes connections from this machine; only a look from outside shows whether a firewall lets the Internet in.`;
    return [{ check, state: 'pass', message }];
  }
  const progress = { stage: 'connection', host, port, timeoutMs, tls: null } as const;
  const { message, advice } = faultOf(failure, progress);
  const inside =
    'Some routers do not lead a machine back to its own public address: then try from outside.';
  return [{ check, state: 'fail', message, advice: `${advice} ${inside}` }];
}

/** Null when the connection came about. */
function connectionFailure(host: string, port: number, timeoutMs: number): Promise<Error | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const timer = setTimeout(() => {
      socket.destroy(Object.assign(new Error('the time is up'), { code: timeoutCode }));
    }, timeoutMs);
    let failure: Error | null = null;
    socket.once('connect', () => socket.destroy());
    socket.once('error', (error) => {
      failure = error;
    });
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(failure);
    });
  });
}

/** GET with each pair that is accepted, which must be 200. */
export async function checkLogin(options: {
  endpoint: string;
  pairs: readonly EndpointCredentials[];
  probe: ProbeEndpoint;
}): Promise<Finding[]> {
  const check = 'endpoint login';
  const { endpoint, pairs, probe } = options;
  const findings: Finding[] = [];
  for (const [i, pair] of pairs.entries()) {
    const { fault } = await probe(endpoint, pair);
    // Numbered: a user name is half of the credentials.
    const which = pairs.length === 1 ? '' : ` (pair ${i + 1} of ${pairs.length})`;
    if (fault === null) {
      const message = `GET with the credentials is answered with 200${which}.`;
      findings.push({ check, state: 'pass', message });
    } else {
      const { message, advice } = fault;
      findings.push({ check, state: 'fail', message: `${message}${which}`, advice });
    }
  }
  if (pairs.length > 1) {
    const message = 'A rotation of the credentials was begun, and is not finished.';
    const advice = '`earshot credentials rotate` goes on from where it was.';
    findings.push({ check: 'rotation', state: 'warn', message, advice });
  }
  return findings;
}

/** GET without credentials, which must be 401: after anything else anybody may be let in. */
export async function checkLoginRequired(options: {
  endpoint: string;
  probe: ProbeEndpoint;
}): Promise<Finding[]> {
  const check = 'login required';
  const { status, fault } = await options.probe(options.endpoint, null);
  if (status === 401) {
    const message = 'GET without credentials is answered with 401.';
    return [{ check, state: 'pass', message }];
  }
  if (fault === null) {
    const message =
      'GET without credentials is answered with 200: the endpoint is open to anybody.';
    const advice =
      'Check that the receiver is what answers, and that a proxy in front adds no credentials of its own.';
    return [{ check, state: 'fail', message, advice }];
  }
  const message = `GET without credentials must be answered with 401. ${fault.message}`;
  return [{ check, state: 'fail', message, advice: fault.advice }];
}

/** Certificates are renewed with a third of their life left: with less than this, that has stopped. */
const shareLeftWarn = 1 / 6;

/**
 * Probes without credentials. `withExtra` trusts EARSHOT_PROBE_CA too, and is asked where `publicly`
 * fails; null without that variable. Gives the probe that reaches the endpoint; null when none does.
 */
export async function checkCertificate(options: {
  endpoint: string;
  publicly: ProbeEndpoint;
  withExtra: ProbeEndpoint | null;
  nowUs: () => number;
}): Promise<{ findings: Finding[]; probe: ProbeEndpoint | null }> {
  const check = 'certificate';
  const { endpoint, publicly, withExtra, nowUs } = options;
  const report = await publicly(endpoint, null);
  if (isTrusted(report)) {
    const message = `It is publicly trusted and for the right name${by(report.tls)}.`;
    const findings: Finding[] = [{ check, state: 'pass', message }];
    return { findings: [...findings, ...tlsFindings(report.tls, nowUs)], probe: publicly };
  }
  const second = withExtra === null ? report : await withExtra(endpoint, null);
  if (isTrusted(second)) {
    const message = `NOT PUBLICLY TRUSTED: it passes because of EARSHOT_PROBE_CA alone${by(second.tls)}.`;
    const advice =
      'Fine for a test; the catalogue refuses it, so get one of a public authority before you register.';
    const findings: Finding[] = [{ check, state: 'warn', message, advice }];
    return { findings: [...findings, ...tlsFindings(second.tls, nowUs)], probe: withExtra };
  }
  const { message = '', advice = '' } = second.fault ?? {};
  return { findings: [{ check, state: 'fail', message, advice }], probe: null };
}

/** The handshake went well when the fault, if there is one, lies behind it. */
function isTrusted({ fault }: ProbeReport): boolean {
  return fault === null || probeStages.indexOf(fault.stage) > probeStages.indexOf('certificate');
}

function tlsFindings(tls: SeenTls | null, nowUs: () => number): Finding[] {
  if (tls === null) return [];
  const check = 'certificate validity';
  const leftMs = tls.notAfter.getTime() - nowUs() / 1000;
  const daysLeft = wholeDays(leftMs * 1_000);
  const message = `${daysLeft} ${daysLeft === 1 ? 'day' : 'days'} left, until ${tls.notAfter.toISOString().slice(0, 10)}.`;
  const lifetimeMs = tls.notAfter.getTime() - tls.notBefore.getTime();
  const advice = 'Renew it, and find out why that has not happened by itself.';
  const validity: Finding =
    leftMs >= lifetimeMs * shareLeftWarn
      ? { check, state: 'pass', message }
      : { check, state: 'warn', message, advice };
  // The probe itself speaks nothing older than 1.2.
  return [validity, { check: 'TLS version', state: 'pass', message: `${tls.protocol}.` }];
}
