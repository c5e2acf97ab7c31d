/** Steps of the doctor on this machine and at the endpoint, from the configuration to the receiver's answer. */

import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { dirname, join } from 'node:path';
import ipaddr from 'ipaddr.js';
import {
  createEndpointProbe,
  type ProbeEndpoint,
  type ProbeReport,
} from '../../admin/endpoint-probe.ts';
import { sessionFileName } from '../../admin/session.ts';
import type { Io } from '../../core/cli/io.ts';
import { credentialsFileName } from '../../core/config/endpoint-credentials.ts';
import { checkSecretFiles, type Step } from '../../core/doctor/steps.ts';
import { hostOf, isLoopbackHost } from '../../core/http/network-address.ts';
import { wholeDays } from '../../core/terms/dates.ts';
import { type Finding, finding, situationAt } from '../../core/terms/evaluation.ts';
import { clauseOf, faultOf, nextStepOf } from '../../core/terms/faults.ts';
import type { CredentialPair } from '../../core/terms/ports.ts';
import { defaultSubscriptionName, endpointOf } from '../../core/terms/subscription.ts';
import { databaseFileName } from '../../store/engine/database.ts';
import { diskSpace } from '../../store/engine/disk-limit.ts';
import { evaluateDisk } from '../../store/status.ts';
import { createStoreChecks, nearestExisting } from '../../store/store-checks.ts';
import { checkConfiguration, type OwnSettings } from './settings.ts';

export function machineSteps(settings: OwnSettings, io: Io): Step[] {
  const { dataDir, catalogueUrl, tokenUrl, serve } = settings;
  const { nowUs, fetch, env, workingDir, settings: all } = io;
  const within = (names: readonly string[]) => names.map((name) => join(dataDir, name));
  const shared = io.features.flatMap(({ sharedFiles = [] }) => sharedFiles);
  const secretFiles = within([
    ...[credentialsFileName, sessionFileName],
    ...new Set(shared.flatMap(({ name }) => [dirname(name), name])),
  ]);
  const databaseFiles = within(['', '-wal', '-shm'].map((end) => `${databaseFileName}${end}`));
  const files = { env, settings: all, workingDir, secretFiles, databaseFiles };
  const store = createStoreChecks(dataDir);
  const services = [catalogueUrl, tokenUrl].filter((url) => url !== undefined);
  const urls = services.map((url) => new URL(url).origin);
  return [
    { name: 'configuration', needs: [], run: async () => checkConfiguration(settings) },
    { name: 'data directory', needs: [], run: store.directory },
    { name: 'secret files', needs: [], run: () => checkSecretFiles(files) },
    {
      name: 'free space',
      needs: ['data directory'],
      run: async () => {
        const place = { dataDir: await nearestExisting(dataDir) };
        const space = diskSpace({ ...place, diskReserveBytes: serve?.diskReserveBytes });
        return [{ check: 'free space', ...evaluateDisk(space, situationAt(nowUs())) }];
      },
    },
    { name: 'database', needs: ['data directory'], run: store.database },
    { name: 'clock', needs: [], run: async () => [await checkClock(urls, { fetch, nowUs })] },
  ];
}

export function endpointSteps(settings: OwnSettings, io: Io): Step[] {
  if (!settings.hasEndpoint) {
    const text = 'Not needed, because no public listener is configured.';
    return [
      { name: 'endpoint', needs: [], run: async () => [finding('endpoint', 'unknown', text)] },
    ];
  }
  const { nowUs } = io;
  const { publicUrl = '', serve, account, probeWithExtra: withExtra } = settings;
  const endpoint = endpointOf(publicUrl, defaultSubscriptionName);
  const pairs = account?.endpoint.pairs ?? serve?.credentials.pairs ?? [];
  const publicly = createEndpointProbe();
  const isLocal = [publicUrl, settings.catalogueUrl].every(isOfThisMachine);
  return [
    { name: 'public URL', needs: [], run: async () => checkPublicUrl(settings.publicUrl) },
    {
      name: 'public address',
      needs: ['public URL'],
      run: async () => {
        if (isLocal) return [finding('public address', 'ok', 'The catalogue is on this machine.')];
        const host = hostOf(new URL(publicUrl));
        return [checkAddresses(host, await resolveName(host), withExtra !== null)];
      },
    },
    {
      name: 'endpoint',
      needs: ['public URL', 'public address'],
      run: () => checkEndpoint({ endpoint, publicly, withExtra, isLocal, pairs, nowUs }),
    },
  ];
}

function isOfThisMachine(text: string | undefined): boolean {
  const url = URL.parse(text ?? '');
  return url !== null && isLoopbackHost(hostOf(url));
}

/** `publicUrl` is an origin; undefined if it is missing or invalid. */
export function checkPublicUrl(publicUrl: string | undefined): Finding[] {
  const check = 'public URL';
  const url = URL.parse(publicUrl ?? '');
  if (url?.protocol !== 'https:') {
    const text = 'EARSHOT_PUBLIC_URL is missing, invalid or not https.';
    const nextStep =
      'Set EARSHOT_PUBLIC_URL to the https URL where the catalogue reaches the receiver, with the port if it is not 443. Without a public host, use a pull subscription: `earshot register --pull`.';
    return [{ ...finding(check, 'critical', text, nextStep), code: 'configuration' }];
  }
  if (isIP(hostOf(url)) !== 0) {
    const text = `${publicUrl} has an IP address, but the catalogue requires a host name.`;
    return [finding(check, 'warning', text, 'Create a DNS name for the machine, and use it.')];
  }
  return [finding(check, 'ok', `${publicUrl} uses https, on port ${url.port || '443'}.`)];
}

/**
 * Queries DNS, and the resolver of this machine only if DNS has no answer: the hosts file often has the machine's own
 * name with a loopback address. Never rejects; without an answer there are no addresses.
 */
async function resolveName(host: string): Promise<string[]> {
  const resolver = new Resolver({ timeout: 3_000, tries: 2 });
  // Never queried in DNS (RFC 6761, 6.3).
  const isLocal = /(^|\.)localhost$/.test(host);
  const queries = isLocal ? [] : [resolver.resolve4(host), resolver.resolve6(host)];
  const answers = await Promise.all(queries.map((query) => query.catch(() => [])));
  if (answers.flat().length > 0) return answers.flat();
  const local = await lookup(host, { all: true }).catch(() => []);
  return local.map(({ address }) => address);
}

/** Checks that the name has public addresses. With `isTest`, a private address is only a warning. */
export function checkAddresses(
  host: string,
  addresses: readonly string[],
  isTest: boolean,
): Finding {
  const check = 'public address';
  const nextStep = nextStepOf(faultOf('ENOTFOUND'));
  if (addresses.length === 0)
    return finding(check, 'critical', `${host}: ${clauseOf('ENOTFOUND')}.`, nextStep);
  const hidden = addresses.map((one) => ipaddr.process(one)).filter((one) => !isUnicast(one));
  if (hidden.length === 0)
    return finding(check, 'ok', `${host} resolves to ${addresses.join(', ')}.`);
  const ranges = hidden.map((address) => `${address} (${address.range()})`).join(', ');
  const level = isTest || hidden.length < addresses.length ? 'warning' : 'critical';
  return finding(check, level, `${host}: not reachable from the Internet: ${ranges}.`, nextStep);
}

const isUnicast = (address: ipaddr.IPv4 | ipaddr.IPv6) => address.range() === 'unicast';

/** Share of the lifetime. Renewal is due with a third left; with less than this it has failed. */
const shareLeftMin = 1 / 6;

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
  pairs: readonly CredentialPair[];
  nowUs: () => number;
}): Promise<Finding[]> {
  const { endpoint, publicly, withExtra, isLocal = false, pairs, nowUs } = options;
  let probe = publicly;
  let report = await probe(endpoint, null);
  if (report.fault?.code.startsWith('certificate') && withExtra !== null) {
    probe = withExtra;
    report = await probe(endpoint, null);
  }
  const { fault, status } = report;
  if (fault !== null && status === null)
    return [finding('endpoint', 'critical', `${endpoint}: ${fault.message}`, fault.advice)];
  const findings = [certificateFinding(report, probe === publicly || isLocal, nowUs())];
  const check = 'endpoint login';
  if (status !== 401) {
    const text = `GET without credentials returns ${status} instead of 401.`;
    findings.push(finding(check, 'critical', text, nextStepOf(faultOf('HTTP 404'))));
  }
  for (const [i, pair] of pairs.entries()) {
    const login = (await probe(endpoint, pair)).fault;
    if (login === null) continue;
    // A number, as the user name is part of the credentials.
    const text = `GET with the credentials (pair ${i + 1} of ${pairs.length}): ${login.message}`;
    findings.push(finding(check, 'critical', text, login.advice));
  }
  if (pairs.length > 1) {
    const text = 'A rotation of the credentials is incomplete.';
    findings.push(finding(check, 'warning', text, 'Run `earshot credentials rotate`.'));
  } else if (pairs.length === 0) {
    const text = 'There are no endpoint credentials yet.';
    findings.push(finding(check, 'unknown', text, 'Run `earshot credentials create`.'));
  } else if (findings.length === 1)
    findings.push(finding(check, 'ok', 'GET returns 401 without the credentials, 200 with them.'));
  return findings;
}

function certificateFinding({ tls }: ProbeReport, isTrusted: boolean, nowUs: number): Finding {
  const { validFromDate, validToDate } = tls?.certificate ?? {};
  const endUs = (validToDate?.getTime() ?? 0) * 1_000;
  const lifetimeUs = endUs - (validFromDate?.getTime() ?? 0) * 1_000;
  const text = `The endpoint answers. ${tls?.protocol}, certificate valid until ${validToDate?.toISOString().slice(0, 10)} (days left: ${wholeDays(endUs - nowUs)}).`;
  if (!isTrusted) {
    const nextStep = 'Only EARSHOT_PROBE_CA trusts it: for the catalogue, use a public authority.';
    return finding('endpoint', 'warning', `NOT PUBLICLY TRUSTED. ${text}`, nextStep);
  }
  if (endUs - nowUs >= lifetimeUs * shareLeftMin) return finding('endpoint', 'ok', text);
  const nextStep = 'Renew the certificate, and check why the automatic renewal failed.';
  return finding('endpoint', 'warning', text, nextStep);
}

/** Differences above these are reported: beyond the second, certificates and one-time codes are invalid. */
const clockSeconds = { warning: 30, critical: 300 };

const clockTimeoutMs = 10_000;

/** Compares the clock with the `Date` header of the first URL that answers, with any status. */
export async function checkClock(
  urls: readonly string[],
  { fetch: send, nowUs }: { fetch: typeof fetch; nowUs: () => number },
): Promise<Finding> {
  const check = 'clock';
  for (const url of urls) {
    // A cache would return the time of an earlier answer.
    const headers = { 'Cache-Control': 'no-store' };
    const signal = AbortSignal.timeout(clockTimeoutMs);
    const request = { method: 'HEAD', redirect: 'manual', headers, signal } as const;
    const askedUs = nowUs();
    const answer = await send(url, request).catch(() => null);
    const thereMs = Date.parse(answer?.headers.get('Date') ?? '');
    if (Number.isNaN(thereMs)) continue;
    // The middle between request and answer, which a cache may have kept.
    const ageSeconds = Number(answer?.headers.get('Age')) || 0;
    const ahead = (askedUs + nowUs()) / 2e6 - thereMs / 1_000 - ageSeconds;
    const seconds = Math.round(Math.abs(ahead));
    const text = `The clock of this machine is ${seconds} s ${ahead > 0 ? 'ahead of' : 'behind'} the clock of ${new URL(url).host}.`;
    if (seconds <= clockSeconds.warning) return finding(check, 'ok', text);
    const level = seconds > clockSeconds.critical ? 'critical' : 'warning';
    return finding(check, level, text, 'Turn on time synchronization: `timedatectl set-ntp true`.');
  }
  return finding(check, 'unknown', 'No service returned a time.');
}
