/** Steps of the doctor on this machine and at the endpoint, from the public URL to the receiver's answer. */

import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { checkClock } from '../../admin/account-checks.ts';
import {
  checkAddresses,
  checkEndpoint,
  checkName,
  checkPublicUrl,
  resolveName,
} from '../../admin/endpoint-checks.ts';
import { createEndpointProbe, hostOf, type ProbeEndpoint } from '../../admin/endpoint-probe.ts';
import { sessionFileName } from '../../admin/session.ts';
import { credentialsFileName } from '../../config/endpoint-credentials.ts';
import { checkSecretFiles } from '../../config/secret-file-checks.ts';
import type { Finding } from '../../domain/finding.ts';
import { defaultSubscriptionName, endpointOf } from '../../domain/subscription.ts';
import { areAllOff, plainSummaryRule, type RefusedAnswer } from '../../domain/summaries.ts';
import { reachHost } from '../../http/bounded-fetch.ts';
import { isLoopbackHost } from '../../http/network-address.ts';
import { probeProof } from '../../http/probe-proof.ts';
import { openStoreReader } from '../../store/store.ts';
import { createStoreChecks } from '../../store/store-checks.ts';
import { createChatClient } from '../../summary/chat-client.ts';
import { checkInference } from '../../summary/check-inference.ts';
import { acmeFolderName, acmeKeptFiles, checkRenewal } from '../../tls/acme-state.ts';
import { checkCertificateFiles } from '../../tls/certificate.ts';
import type { Io } from '../io.ts';
import { checkConfiguration, type DoctorSettings, fixInFile, needsOf, type Step } from './steps.ts';

const noEndpoint: Finding = {
  check: 'endpoint',
  state: 'skipped',
  message:
    'Not needed, because all subscriptions are pull: public URL, name, certificate, port, login.',
};

export function endpointSteps(settings: DoctorSettings, io: Io): Step[] {
  if (!settings.hasEndpoint) {
    return [{ name: 'endpoint', needs: [], run: async () => [noEndpoint] }];
  }
  const { nowUs } = io;
  const { publicUrl = '', serve, account, probeWithExtra } = settings;
  const endpoint = endpointOf(publicUrl, defaultSubscriptionName);
  const pairs = account?.endpoint.pairs ?? serve?.credentials.pairs;
  const proving = (probe: ProbeEndpoint) => provingProbe(probe, pairs?.at(-1), io);
  const withExtra = probeWithExtra && proving(probeWithExtra);
  const publicly = proving(createEndpointProbe());
  const isLocal = [publicUrl, settings.catalogueUrl].every(isOfThisMachine);
  return [
    { name: 'public URL', needs: [], run: async () => checkPublicUrl(settings.publicUrl) },
    ...(isLocal
      ? [{ name: 'public address', needs: ['public URL'], run: async () => [localOnly] }]
      : addressSteps(publicUrl, { isTest: withExtra !== null }, io)),
    ...certificateSteps(settings, io),
    {
      name: 'endpoint',
      needs: ['public URL', 'name'],
      run: async () => {
        const options = { endpoint, publicly, withExtra, isLocal, pairs: pairs ?? [], nowUs };
        const findings = await checkEndpoint(options);
        return pairs?.length === 0 ? [...findings, noCredentials] : findings;
      },
    },
  ];
}

const localOnly: Finding = {
  check: 'public address',
  state: 'skipped',
  message: 'Not needed, because the receiver and the catalogue are on this machine: name, address.',
};

function isOfThisMachine(text: string | undefined): boolean {
  const url = URL.parse(text ?? '');
  return url !== null && isLoopbackHost(hostOf(url));
}

/** Steps for a receiver that the catalogue reaches through public DNS. */
function addressSteps(
  publicUrl: string,
  { isTest }: { isTest: boolean },
  io: Pick<Io, 'localAddresses'>,
): Step[] {
  let addresses: readonly string[] = [];
  return [
    {
      name: 'name',
      needs: ['public URL'],
      run: async () => {
        const host = hostOf(new URL(publicUrl));
        const resolved = await resolveName(host);
        addresses = resolved.addresses;
        return checkName(host, resolved);
      },
    },
    {
      name: 'public address',
      needs: ['name'],
      run: async () => checkAddresses({ addresses, localAddresses: io.localAddresses(), isTest }),
    },
  ];
}

/** Adds a proof to probes without a login, so that the receiver does not count them as failed logins. */
function provingProbe(
  probe: ProbeEndpoint,
  pair: { username: string; password: string } | undefined,
  { nowUs, newId }: Pick<Io, 'nowUs' | 'newId'>,
): ProbeEndpoint {
  if (pair === undefined) return probe;
  return (endpoint, credentials) =>
    probe(endpoint, credentials, credentials === null ? probeProof(pair, nowUs(), newId()) : null);
}

const noCredentials: Finding = {
  check: 'endpoint login',
  state: 'skipped',
  message: 'There are no endpoint credentials yet.',
  advice: 'To create credentials: `earshot credentials create`.',
};

/** Steps of the configured kind of certificate. */
function certificateSteps(settings: DoctorSettings, io: Io): Step[] {
  const { serve, publicUrl, dataDir } = settings;
  if (serve?.tls.kind === 'acme') {
    const { tls } = serve;
    const needs = ['data directory'];
    return [{ name: 'renewal', needs, run: async () => checkRenewal(dataDir, tls) }];
  }
  const host = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  return [
    {
      name: 'certificate files',
      needs: needsOf(serve),
      run: async () =>
        serve?.tls.kind === 'files'
          ? checkCertificateFiles(serve.tls, { host, nowUs: io.nowUs() })
          : [behindProxy],
    },
  ];
}

const behindProxy: Finding = {
  check: 'certificate files',
  state: 'skipped',
  message: 'EARSHOT_TLS=off: the proxy provides the certificate.',
};

/** Timeout of one answer; short, because a person waits for it. */
const timeoutMs = 30_000;

export function inferenceSteps({ summary, summaryRules, dataDir }: DoctorSettings, io: Io): Step[] {
  return [
    {
      name: 'inference service',
      needs: needsOf(summary && summaryRules),
      run: async () => {
        if (summary?.inference) {
          const { url: baseUrl, apiKey, model } = summary.inference;
          const client = createChatClient({ baseUrl, apiKey, fetch: io.fetch, timeoutMs });
          const refusedAnswer = await refusedAnswerIn(dataDir);
          return checkInference({ client, model, refusedAnswer, signal: io.signal });
        }
        const defaultRule = plainSummaryRule(summary?.rule ?? 'off');
        return [withoutModel(!areAllOff([defaultRule, ...(summaryRules?.values() ?? [])]))];
      },
    },
  ];
}

/** Null without a store. Another check reports a store that cannot be read. */
async function refusedAnswerIn(dataDir: string): Promise<RefusedAnswer | null> {
  const store = openStoreReader(dataDir);
  try {
    return await store.summaries.refusedAnswer();
  } catch {
    return null;
  } finally {
    await store.close();
  }
}

/** A missing model is not a failure: summaries then come from the template. */
function withoutModel(hasRules: boolean): Finding {
  const check = 'inference service';
  const advice =
    'For summaries by a language model, set EARSHOT_INFERENCE_API_KEY (a key of your project) and EARSHOT_INFERENCE_MODEL (a model of that project).';
  if (!hasRules) {
    return {
      check,
      state: 'skipped',
      message: 'No model is configured, and no rule requests summaries.',
    };
  }
  const message =
    'Summaries are requested, but no model is configured. The texts come from the template.';
  return { check, state: 'warn', message, advice };
}

export function machineSteps(settings: DoctorSettings, io: Io): Step[] {
  const { dataDir, catalogueUrl, tokenUrl } = settings;
  const { nowUs, fetch } = io;
  const ownNames = [credentialsFileName, sessionFileName];
  const secretFileNames = [...ownNames, acmeFolderName, ...acmeKeptFiles];
  const place = { dataDir, diskReserveBytes: settings.serve?.diskReserveBytes };
  const isNode = settings.serve?.sharedLog != null;
  const store = createStoreChecks({ ...place, isNode, nowUs, secretFileNames });
  const services = [catalogueUrl, tokenUrl].filter((url) => url !== undefined);
  const urls = services.map((url) => new URL(url).origin);
  const directory = ['data directory'];
  return [
    { name: 'configuration', needs: [], run: async () => checkConfiguration(settings) },
    { name: 'data directory', needs: [], run: store.directory },
    { name: 'owner-only files', needs: directory, run: store.ownerOnly },
    { name: 'secret files', needs: [], run: () => checkSecretFiles(io) },
    { name: 'free space', needs: directory, run: store.freeSpace },
    { name: 'database', needs: directory, run: store.database },
    { name: 'clock', needs: [], run: () => checkClock({ urls, fetch, nowUs }) },
  ];
}

/** Steps of sinks and alerts. Findings of a sink are named `sink <name>`. */
export function deliverySteps(settings: DoctorSettings, io: Io): Step[] {
  const { sinks, faultySinks, watch, inFile } = settings;
  const findProgram = createFindProgram(io);
  const { signal } = io;
  return [
    {
      name: 'sinks',
      needs: needsOf(sinks),
      run: async (): Promise<Finding[]> => {
        const faults = faultySinks.flatMap(({ name, problems }) =>
          problems.map(
            (message): Finding => ({
              check: `sink ${name}`,
              state: 'fail',
              message,
              advice: fixInFile,
            }),
          ),
        );
        if (sinks?.length === 0 && faults.length > 0) return faults;
        // Loads the code of sinks only if there are sinks.
        const { checkSinks } = await import('../../sinks/registry.ts');
        const subscriptions = (inFile ?? []).map(({ name }) => name);
        const deps = { findProgram, subscriptions, signal };
        return [...(await checkSinks(sinks ?? [], deps)), ...faults];
      },
    },
    {
      name: 'alerts',
      needs: needsOf(watch),
      run: async () => (watch === undefined ? [] : checkAlerts({ ...watch, findProgram, signal })),
    },
  ];
}

/** Returns null if the program can be executed; otherwise the reason, to follow "… cannot be run: ". */
type FindProgram = (program: string) => string | null;

/** Searches as the system does: by path if there is a slash, otherwise in the folders of PATH. */
function createFindProgram({ env, workingDir }: Pick<Io, 'env' | 'workingDir'>): FindProgram {
  return (program) => {
    if (program.includes('/')) return faultOf(resolve(workingDir, program));
    const folders = (env.PATH ?? '').split(delimiter).map((folder) => resolve(workingDir, folder));
    const faults = folders.map((folder) => faultOf(join(folder, program)));
    if (faults.includes(null)) return null;
    return faults.find((fault) => fault !== absent) ?? 'no program of this name on the PATH';
  };
}

const absent = 'no such file';

function faultOf(path: string): string | null {
  try {
    if (!statSync(path).isFile()) return 'not a file';
  } catch {
    return absent;
  }
  try {
    accessSync(path, constants.X_OK);
    return null;
  } catch {
    return 'no permission to execute it';
  }
}

const alertCheck = { check: 'alerts' } as const;

interface AlertCheckOptions {
  /** A secret: findings name only its host. Null if not set. */
  alertUrl: string | null;
  /** Program and arguments; null if not set. */
  alertCommand: readonly string[] | null;
  /** Returns null when the program can be started, otherwise why not. */
  findProgram: (program: string) => string | null;
  signal: AbortSignal;
}

/** Returns one finding per channel, or one if there is none. Never rejects. */
export async function checkAlerts(options: AlertCheckOptions): Promise<Finding[]> {
  const { alertUrl, alertCommand } = options;
  const findings = [
    ...(alertUrl === null ? [] : [await checkUrl(alertUrl, options.signal)]),
    ...(alertCommand === null ? [] : [checkCommand(alertCommand, options)]),
  ];
  return findings.length > 0 ? findings : [noChannel];
}

const noChannel: Finding = {
  ...alertCheck,
  state: 'warn',
  message: 'No alert channel is configured: alerts only appear in the log and in `earshot alerts`.',
  advice:
    'Set EARSHOT_ALERT_URL (for example the incoming webhook of a chat) or EARSHOT_ALERT_COMMAND.',
};

async function checkUrl(url: string, signal: AbortSignal): Promise<Finding> {
  const { host } = new URL(url);
  const fault = await reachHost(url, { ca: null, signal });
  return fault === null
    ? passed(`${host} is reachable; \`earshot alerts --test\` sends a test message.`)
    : {
        ...{ ...alertCheck, state: 'fail', message: `${host} cannot be reached: ${fault}.` },
        advice:
          'Correct EARSHOT_ALERT_URL, or allow connections from this machine to the host of this URL.',
      };
}

function checkCommand(
  [program = '']: readonly string[],
  { findProgram }: Pick<AlertCheckOptions, 'findProgram'>,
): Finding {
  const fault = findProgram(program);
  return fault === null
    ? passed(`${program} is executable; \`earshot alerts --test\` runs it.`)
    : {
        ...{ ...alertCheck, state: 'fail', message: `${program} cannot be run: ${fault}.` },
        advice:
          'Correct EARSHOT_ALERT_COMMAND, preferably with an absolute path, or make the program executable.',
      };
}

const passed = (message: string): Finding => ({ ...alertCheck, state: 'pass', message });
