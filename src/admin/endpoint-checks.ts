/** Checks of the public URL for `earshot doctor`: form, name, addresses, port, login and certificate. */

import { lookup, Resolver } from 'node:dns/promises';
import { connect, isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { wholeDays } from '../domain/dates.ts';
import type { Finding } from '../domain/finding.ts';
import type { ProbeEndpoint, ProbeReport } from './endpoint-probe.ts';
import { by, faultOf, probeStages, type SeenTls, timeoutCode } from './probe-fault.ts';
import type { EndpointCredentials } from './subscription-client.ts';

const setPublicUrl =
  'Set EARSHOT_PUBLIC_URL to the https URL where the catalogue reaches the receiver, with the port if it is not 443. Without a public host, use a pull subscription: `earshot register --pull`.';

/** `publicUrl` is an origin; undefined if it is missing or invalid. */
export function checkPublicUrl(publicUrl: string | undefined): Finding[] {
  const check = 'public URL';
  if (publicUrl === undefined) {
    const message = 'EARSHOT_PUBLIC_URL is missing or invalid.';
    return [{ check, state: 'fail', message, advice: setPublicUrl }];
  }
  const { protocol, hostname, port } = new URL(publicUrl);
  if (protocol !== 'https:') {
    const message = `${publicUrl} is not https, which the catalogue requires.`;
    return [{ check, state: 'fail', message, advice: setPublicUrl }];
  }
  if (isIP(withoutBrackets(hostname)) !== 0) {
    const message = `${publicUrl} has an IP address, but the catalogue requires a host name.`;
    const advice = 'Create a DNS name for the machine, and use it in EARSHOT_PUBLIC_URL.';
    return [{ check, state: 'warn', message, advice }];
  }
  return [{ check, state: 'pass', message: `${publicUrl} uses https, on port ${port || '443'}.` }];
}

/** Resolves the name of the URL; `addresses` is empty when that fails. */
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
    const advice = `Check the spelling, or create an A record at your DNS provider. To test: dig ${host}`;
    return { findings: [{ check, state: 'fail', message, advice }], addresses };
  }
  if (source === 'hosts') {
    const message = `${host} resolves to ${list} only on this machine: the name is not in DNS.`;
    // Never in DNS (RFC 6761). Another name may be a real one with a local address here, as Debian sets it.
    const isLocal = /(^|\.)localhost$/.test(host);
    const advice = isLocal
      ? 'This is fine for a test, but the catalogue cannot resolve this name.'
      : 'Create an A record at your DNS provider: the catalogue uses public DNS.';
    return { findings: [{ check, state: 'warn', message, advice }], addresses };
  }
  const message =
    source === 'address' ? `${host} is an IP address.` : `${host} resolves to ${list}.`;
  return { findings: [{ check, state: 'pass', message }], addresses };
}

/** With `isTest`, an address that the catalogue cannot reach is only a warning. */
export function checkAddresses(options: {
  addresses: readonly string[];
  isTest: boolean;
}): Finding[] {
  const check = 'public address';
  const { addresses, isTest } = options;
  const hidden = addresses.filter((address) => rangeOf(address) !== 'unicast');
  if (hidden.length > 0) {
    const list = hidden
      .map((address) => `${address} (${readableRange(rangeOf(address))})`)
      .join(', ');
    const message = `Not reachable from the Internet: ${list}.`;
    const advice = isTest
      ? 'This is fine for a test, but the catalogue cannot reach such an address.'
      : 'Set the DNS records of the name to the public addresses of this machine only. If your network uses its own DNS, query a public server: dig @9.9.9.9 NAME';
    const some = hidden.length < addresses.length;
    return [{ check, state: isTest || some ? 'warn' : 'fail', message, advice }];
  }
  if (addresses.every((address) => isIP(address) === 6)) {
    const message =
      'The name has only IPv6 addresses. It is not known if the catalogue delivers over IPv6.';
    return [{ check, state: 'warn', message, advice: 'Add an IPv4 address (A record).' }];
  }
  return [{ check, state: 'pass', message: `Public addresses: ${addresses.join(', ')}.` }];
}

/** Returns the IANA range by ipaddr.js; `unicast` is a public address. */
function rangeOf(address: string): string {
  return ipaddr.process(address).range();
}

/** `carrierGradeNat` -> `carrier grade nat`. */
function readableRange(range: string): string {
  return range.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

export interface ResolvedName {
  addresses: readonly string[];
  /** `dns`: public DNS. `hosts`: known to this machine only. `address`: the name is an IP address. */
  source: 'dns' | 'hosts' | 'address';
}

/** Rejects for a name that cannot be resolved. */
type ResolveName = (host: string) => Promise<ResolvedName>;

const timeoutMs = 3_000;

/**
 * Queries DNS, and the resolver of this machine only if DNS has no answer: the hosts file often has the
 * machine's own name with a loopback address.
 */
export async function resolveName(host: string): Promise<ResolvedName> {
  if (isIP(host) !== 0) return { addresses: [host], source: 'address' };
  // Never queried in DNS (RFC 6761, 6.3).
  const isLocal = /(^|\.)localhost$/.test(host);
  const inDns = isLocal ? { addresses: [], denied: true } : await askDns(host);
  if (inDns.addresses.length > 0) return { addresses: inDns.addresses, source: 'dns' };
  const local = (await lookup(host, { all: true })).map(({ address }) => address);
  return { addresses: local, source: inDns.denied ? 'hosts' : 'dns' };
}

/** `denied`: a DNS server answered that the name does not exist. False when none answered. */
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
 * Compares the addresses of the name with those of this machine's interfaces. Behind NAT, where those are
 * private, this check has no result; the checks that connect are better.
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
    return [{ check, state: 'pass', message: 'The name resolves to an address of this machine.' }];
  }
  // IPv4 and IPv6 separately: certificate authorities first use an outdated AAAA record.
  const compared = elsewhere.filter((address) =>
    local.some((own) => own.kind() === ipaddr.process(address).kind() && own.range() === 'unicast'),
  );
  if (compared.length === 0) {
    const message = `${elsewhere.join(', ')} is not an address of this machine. This machine has only private addresses and may be behind NAT.`;
    return [{ check, state: 'pass', message }];
  }
  const own = local.filter((address) => address.range() === 'unicast').join(', ');
  return [
    {
      check,
      state: 'warn',
      message: `The name resolves to ${compared.join(', ')}, but this machine has ${own}.`,
      advice:
        'Correct the A and AAAA records of the name, unless a load balancer or NAT forwards the resolved address to this machine.',
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
    const message = `Port ${port} accepts connections from this machine. A firewall may still block connections from the Internet.`;
    return [{ check, state: 'pass', message }];
  }
  const progress = { stage: 'connection', host, port, timeoutMs, tls: null } as const;
  const { message, advice } = faultOf(failure, progress);
  const hairpin =
    'Some routers do not allow connections to their own public address. In that case, test from another network.';
  return [{ check, state: 'fail', message, advice: `${advice} ${hairpin}` }];
}

/** Returns null when the connection was established. */
function connectionFailure(host: string, port: number, timeoutMs: number): Promise<Error | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const timer = setTimeout(() => {
      socket.destroy(Object.assign(new Error('timeout'), { code: timeoutCode }));
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

/** Sends GET with each accepted pair; the status must be 200. */
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
    // A number, as the user name is part of the credentials.
    const which = pairs.length === 1 ? '' : ` (pair ${i + 1} of ${pairs.length})`;
    if (fault === null) {
      const message = `GET with the credentials returns 200${which}.`;
      findings.push({ check, state: 'pass', message });
    } else {
      const { message, advice } = fault;
      findings.push({ check, state: 'fail', message: `${message}${which}`, advice });
    }
  }
  if (pairs.length > 1) {
    const message = 'A rotation of the credentials is not complete.';
    const advice = 'To resume it: `earshot credentials rotate`.';
    findings.push({ check: 'rotation', state: 'warn', message, advice });
  }
  return findings;
}

/** Sends GET without credentials; the status must be 401, otherwise the endpoint may be open. */
export async function checkLoginRequired(options: {
  endpoint: string;
  probe: ProbeEndpoint;
}): Promise<Finding[]> {
  const check = 'login required';
  const { status, fault } = await options.probe(options.endpoint, null);
  if (status === 401) {
    const message = 'GET without credentials returns 401.';
    return [{ check, state: 'pass', message }];
  }
  if (fault === null) {
    const message = 'GET without credentials returns 200: the endpoint is open to everyone.';
    const advice =
      'Check that earshot, and no other program, answers at this URL, and that no proxy adds credentials.';
    return [{ check, state: 'fail', message, advice }];
  }
  const message = `GET without credentials must return 401. ${fault.message}`;
  return [{ check, state: 'fail', message, advice: fault.advice }];
}

/** Share of the lifetime. Renewal is due with a third left; with less than this it has failed. */
const shareLeftWarn = 1 / 6;

/**
 * Probes without credentials. `withExtra` also trusts EARSHOT_PROBE_CA (null without it), and is used when
 * `publicly` fails. Returns the probe that reaches the endpoint; null when none does.
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
    const message = `The certificate is publicly trusted and valid for the name${by(report.tls)}.`;
    const findings: Finding[] = [{ check, state: 'pass', message }];
    return { findings: [...findings, ...tlsFindings(report.tls, nowUs)], probe: publicly };
  }
  const second = withExtra === null ? report : await withExtra(endpoint, null);
  if (isTrusted(second)) {
    const message = `NOT PUBLICLY TRUSTED: the certificate is trusted only with EARSHOT_PROBE_CA${by(second.tls)}.`;
    const advice =
      'This is fine for a test, but the catalogue refuses this certificate. Get a certificate from a public authority before you register.';
    const findings: Finding[] = [{ check, state: 'warn', message, advice }];
    return { findings: [...findings, ...tlsFindings(second.tls, nowUs)], probe: withExtra };
  }
  const { message = '', advice = '' } = second.fault ?? {};
  return { findings: [{ check, state: 'fail', message, advice }], probe: null };
}

/** True when the TLS handshake succeeded; a fault may follow it. */
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
  const advice = 'Renew the certificate, and check why the automatic renewal failed.';
  const validity: Finding =
    leftMs >= lifetimeMs * shareLeftWarn
      ? { check, state: 'pass', message }
      : { check, state: 'warn', message, advice };
  // The probe supports no version older than 1.2.
  return [validity, { check: 'TLS version', state: 'pass', message: `${tls.protocol}.` }];
}
