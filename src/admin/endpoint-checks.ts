/** Checks of the public URL for `earshot doctor`: form, name, addresses, port, certificate and login. */
import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { wholeDays } from '../domain/dates.ts';
import type { Finding } from '../domain/finding.ts';
import { hostOf, type ProbeEndpoint, type ProbeReport } from './endpoint-probe.ts';
import type { EndpointCredentials } from './subscription-client.ts';

function found(check: string, state: Finding['state'], message: string, advice = ''): Finding {
  return { check, state, message, ...(advice === '' ? {} : { advice }) };
}

const setPublicUrl =
  'Set EARSHOT_PUBLIC_URL to the https URL where the catalogue reaches the receiver, with the port if it is not 443. Without a public host, use a pull subscription: `earshot register --pull`.';

/** `publicUrl` is an origin; undefined if it is missing or invalid. */
export function checkPublicUrl(publicUrl: string | undefined): Finding[] {
  const check = 'public URL';
  const url = URL.parse(publicUrl ?? '');
  if (url?.protocol !== 'https:') {
    const fault = url === null ? 'missing or invalid' : 'not https, which the catalogue requires';
    return [found(check, 'fail', `EARSHOT_PUBLIC_URL is ${fault}.`, setPublicUrl)];
  }
  if (isIP(hostOf(url)) !== 0) {
    const message = `${publicUrl} has an IP address, but the catalogue requires a host name.`;
    return [found(check, 'warn', message, 'Create a DNS name for the machine, and use it.')];
  }
  return [found(check, 'pass', `${publicUrl} uses https, on port ${url.port || '443'}.`)];
}

/** `isPublic` is false if only this machine resolves the name, as in its hosts file. */
export type ResolvedName = { addresses: readonly string[]; isPublic: boolean };

/**
 * Queries DNS, and the resolver of this machine only if DNS has no answer: the hosts file often has the machine's own
 * name with a loopback address. Never rejects; without an answer there are no addresses.
 */
export async function resolveName(host: string): Promise<ResolvedName> {
  if (isIP(host) !== 0) return { addresses: [host], isPublic: true };
  const resolver = new Resolver({ timeout: 3_000, tries: 2 });
  // Never queried in DNS (RFC 6761, 6.3).
  const isLocal = /(^|\.)localhost$/.test(host);
  const queries = isLocal ? [] : [resolver.resolve4(host), resolver.resolve6(host)];
  const answers = await Promise.all(queries.map((query) => query.catch(() => [])));
  const addresses = answers.flat();
  if (addresses.length > 0) return { addresses, isPublic: true };
  const local = await lookup(host, { all: true }).catch(() => []);
  return { addresses: local.map(({ address }) => address), isPublic: false };
}

/** Checks that the name is in DNS. */
export function checkName(host: string, { addresses, isPublic }: ResolvedName): Finding[] {
  const list = addresses.join(', ');
  const advice = `Create an A record at your DNS provider, because the catalogue uses public DNS. To test: dig ${host}`;
  if (list === '')
    return [found('name', 'fail', `${host} does not resolve to an address.`, advice)];
  if (isPublic) return [found('name', 'pass', `${host} resolves to ${list}.`)];
  const message = `${host} resolves to ${list} only on this machine. This is fine for a test.`;
  return [found('name', 'warn', message, advice)];
}

/**
 * Checks that the addresses of the name are public, and those of this machine; behind NAT, where this machine has no
 * public address, they cannot be compared. With `isTest`, a private address is only a warning.
 */
export function checkAddresses(options: {
  addresses: readonly string[];
  localAddresses: readonly string[];
  isTest: boolean;
}): Finding[] {
  const check = 'public address';
  const named = options.addresses.map((address) => ipaddr.process(address));
  const own = options.localAddresses.map((address) => ipaddr.process(address)).filter(isUnicast);
  const [shown, hidden] = [named.filter(isUnicast), named.filter((one) => !isUnicast(one))];
  // IPv4 and IPv6 separately: certificate authorities first use an outdated AAAA record.
  const comparable = shown.filter((one) => own.some((local) => local.kind() === one.kind()));
  const elsewhere = comparable.filter((one) => !own.map(String).includes(one.toString()));
  const findings: Finding[] = [];
  if (hidden.length > 0) {
    const ranges = hidden.map((address) => `${address} (${address.range()})`).join(', ');
    const state = options.isTest || shown.length > 0 ? 'warn' : 'fail';
    const advice = 'Set the DNS records of the name to public addresses of this machine only.';
    findings.push(found(check, state, `Not reachable from the Internet: ${ranges}.`, advice));
  }
  if (elsewhere.length > 0) {
    const message = `The name resolves to ${elsewhere.join(', ')}, but this machine has ${own.join(', ')}.`;
    const advice =
      'Correct the A and AAAA records, unless a load balancer or NAT forwards the address to this machine.';
    findings.push(found(check, 'warn', message, advice));
  }
  if (findings.length > 0) return findings;
  return [found(check, 'pass', `Public addresses: ${options.addresses.join(', ')}.`)];
}

const isUnicast = (address: ipaddr.IPv4 | ipaddr.IPv6) => address.range() === 'unicast';

/** Share of the lifetime. Renewal is due with a third left; with less than this it has failed. */
const shareLeftWarn = 1 / 6;

/**
 * Sends a GET without credentials, which must return 401, then one with each accepted pair, which must return 200.
 * `withExtra` also trusts EARSHOT_PROBE_CA (null without it), and is used if `publicly` refuses the certificate.
 */
export async function checkEndpoint(options: {
  endpoint: string;
  publicly: ProbeEndpoint;
  withExtra: ProbeEndpoint | null;
  /** True if the catalogue is on this machine, too: then the certificate need not be publicly trusted. */
  isLocal?: boolean;
  pairs: readonly EndpointCredentials[];
  nowUs: () => number;
}): Promise<Finding[]> {
  const { endpoint, publicly, withExtra, isLocal = false, pairs, nowUs } = options;
  let probe = publicly;
  let report = await probe(endpoint, null);
  if (report.fault?.code.startsWith('certificate') && withExtra !== null) {
    probe = withExtra;
    report = await probe(endpoint, null);
  }
  const { fault } = report;
  if (fault !== null && report.status === null) {
    return [found('endpoint', 'fail', `${endpoint}: ${fault.message}`, fault.advice)];
  }
  const trust = probe === publicly ? 'public' : isLocal ? 'local' : 'extra';
  const findings = [certificateFinding(report, trust, nowUs()), openFinding(report)];
  for (const [i, pair] of pairs.entries()) {
    const login = (await probe(endpoint, pair)).fault;
    // A number, as the user name is part of the credentials.
    const which = pairs.length === 1 ? '' : ` (pair ${i + 1} of ${pairs.length})`;
    const { message = 'GET with the credentials returns 200.', advice } = login ?? {};
    findings.push(found('endpoint login', login ? 'fail' : 'pass', message + which, advice));
  }
  if (pairs.length > 1) {
    const message = 'A rotation of the credentials is incomplete.';
    findings.push(
      found('rotation', 'warn', message, 'To resume it: `earshot credentials rotate`.'),
    );
  }
  return findings;
}

function certificateFinding(
  { tls }: ProbeReport,
  trust: 'public' | 'local' | 'extra',
  nowUs: number,
): Finding {
  const { validFromDate, validToDate } = tls?.certificate ?? {};
  const endUs = (validToDate?.getTime() ?? 0) * 1_000;
  const lifetimeUs = endUs - (validFromDate?.getTime() ?? 0) * 1_000;
  const left = `${tls?.protocol}, valid until ${validToDate?.toISOString().slice(0, 10)} (days left: ${wholeDays(endUs - nowUs)}).`;
  if (trust === 'extra') {
    const message = `NOT PUBLICLY TRUSTED: only with EARSHOT_PROBE_CA. This is fine for a test, but the catalogue refuses it. ${left}`;
    return found('endpoint', 'warn', message, 'Get a certificate of a public authority.');
  }
  const trusted =
    trust === 'public'
      ? 'publicly trusted certificate'
      : 'certificate that only EARSHOT_PROBE_CA trusts';
  const message = `The endpoint answers, with a ${trusted}: ${left}`;
  if (endUs - nowUs >= lifetimeUs * shareLeftWarn) return found('endpoint', 'pass', message);
  const advice = 'Renew the certificate, and check why the automatic renewal failed.';
  return found('endpoint', 'warn', message, advice);
}

/** Without credentials, the status must be 401, otherwise the endpoint may be open. */
function openFinding({ status, fault }: ProbeReport): Finding {
  const check = 'login required';
  if (status === 401) return found(check, 'pass', 'GET without credentials returns 401.');
  const message = `GET without credentials must return 401. ${fault?.message ?? 'It returns 200: the endpoint is open to everyone.'}`;
  const advice = 'Check that earshot answers at this URL, and that no proxy adds credentials.';
  return found(check, 'fail', message, fault?.advice ?? advice);
}
