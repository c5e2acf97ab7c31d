/** Composes the receiver: store, index, certificate, listeners. Closes them in reverse order. */
import { isDeepStrictEqual } from 'node:util';
import {
  type ConsoleOptions,
  createConsoleApp,
  type Readiness,
  type UnreadyReason,
} from '../core/api/app.ts';
import { type ConsoleParts, loadListenerSlots } from '../core/api/listener-slot.ts';
import { type Io, within } from '../core/cli/io.ts';
import { nameCalled } from '../core/cli/output.ts';
import type { StartConfig } from '../core/config/config.ts';
import { type CredentialPairs, readCredentialsFile } from '../core/config/endpoint-credentials.ts';
import { type Closers, createClosers } from '../core/host/job.ts';
import { startIdleCollection } from '../core/host/serve-thread.ts';
import { type Listener, startListener } from '../core/http/listener.ts';
import { hostInUrl, localUrl } from '../core/http/network-address.ts';
import { problemResponse } from '../core/http/problem.ts';
import { createStatus, loadStatusParts, type StatusSources } from '../core/status/status.ts';
import { AppError, errorText, isAppError } from '../core/terms/app-error.ts';
import type { Logger, Receipt } from '../core/terms/ports.ts';
import { openConfiguredStore, type Store } from '../store/store.ts';
import { tablesOf } from '../store/tables.ts';
import { createReceiverApp } from './app.ts';
import { createCredentialCheck, createGate } from './basic-auth.ts';
import { startDeliveryMarks } from './own-jobs.ts';
import { refusals } from './running-receiver.ts';
import type { JobContext, ServedCertificate, Service, ServiceContext } from './slots.ts';

/** Time for open requests at shutdown. */
const graceMs = 10_000;

export interface RunningReceiver {
  /** Public listener, for example `https://127.0.0.1:8443`; null without one. */
  url: string | null;
  /** Private listener, for example `http://127.0.0.1:8080`; null for none. */
  consoleUrl: string | null;
  store: Store;
  /** Sources of the parts of the status. */
  statusSources: StatusSources;
  /** Records and counts entries of the queue of a subscription. */
  notePulled(subscription: string, receipts: readonly Receipt[]): void;
  /** Returns the accepted credentials. */
  acceptedCredentials(): CredentialPairs;
  /** False until the first certificate is issued; the receiver cannot be reached before that. */
  hasCertificate: boolean;
  /** Sets the background jobs, for the status. */
  setBackgroundJobs(running: Pick<JobContext, 'version' | 'jobs'>): void;
  close(): Promise<void>;
}

/** Resolves when the receiver accepts notifications. If a step fails, closes what was opened. */
export async function serve(config: StartConfig, log: Logger, io: Io): Promise<RunningReceiver> {
  const closers = createClosers();
  const { nowUs, newId } = io;
  const services: Service[] = [];
  try {
    const store = await openConfiguredStore(config, io, {
      onCommit: (commit) => services.forEach((one) => void one.noteCommit?.(commit)),
      log,
    });
    closers.add(() => store.close());
    const statusParts = await loadStatusParts(io.features);
    await startServices(services, { config, store, statusParts, log, io }, closers);
    const certificate = services.find((one) => one.certificate !== undefined)?.certificate;
    const marks = startDeliveryMarks(store, { nowUs, log });
    closers.add(() => marks.stop());
    const credentials = startCredentials(config, log);
    closers.add(() => credentials.stop());
    const idle = startIdleCollection(closers);
    const app = createReceiverApp({
      ...{ intake: store, log, nowUs, newRequestId: newId },
      checkCredentials: credentials.checkCredentials,
      trustedProxies: config.trustedProxies,
      observe: (...request) => {
        idle.note();
        for (const one of services) one.observe?.(...request);
      },
      onDelivered: marks.note,
    });
    const listener = await openListener(config, app.fetch, certificate, { log, newId });
    if (listener !== null) {
      closers.add(() => listener.close(graceMs));
      const renewal = certificate?.follow(listener);
      closers.add(async () => renewal?.stop());
    }
    const readiness = createReadiness({ store, certificate, nowUs });
    const { setBackgroundJobs, sources } = statusSourcesOf(config, { store, readiness, log }, io);
    const status = createStatus(statusParts, sources);
    const parts = Object.assign({}, ...services.map((one) => one.parts)) as ConsoleParts;
    const own = { status, statusParts, setting: sources.setting };
    const queries = await serveQueries(config, { ...parts, ...own, store, readiness, log }, io);
    closers.add(() => queries.close());
    return {
      // Features declare the parts of their services.
      ...(parts as unknown as RunningReceiver),
      ...{ url: listener && urlOf(listener, certificate !== undefined), store },
      ...{ consoleUrl: queries.consoleUrl, statusSources: sources, setBackgroundJobs },
      hasCertificate: certificate === undefined || certificate.served() !== null,
      acceptedCredentials: credentials.accepted,
      notePulled: (subscription, receipts) => {
        marks.note(subscription, '');
        for (const receipt of receipts)
          for (const one of services) one.noteReceipt?.(subscription, receipt);
      },
      close: closers.closeAll,
    };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

/** Starts the services of all features in their order, and adds them to `services`. */
async function startServices(
  services: Service[],
  context: ServiceContext,
  closers: Closers,
): Promise<void> {
  for (const { service } of context.io.features) {
    if (service === undefined) continue;
    const started = await service(context);
    closers.add(async () => started.close?.());
    services.push(started);
  }
}

/** Returns null if the receiver only reads queues. */
async function openListener(
  { listen }: StartConfig,
  fetch: ReturnType<typeof createReceiverApp>['fetch'],
  certificate: ServedCertificate | undefined,
  { log, newId }: { log: Logger; newId: () => string },
): Promise<Listener | null> {
  if (listen === null) return null;
  return startListener({
    ...{ fetch, listen, listenVariable: 'EARSHOT_LISTEN', keyPair: certificate?.served() },
    onBadRequest: (error) => malformed(error, log, newId()),
    answersHalfClosed: true,
    handshakeOnly: certificate?.handshakeOnly,
  });
}

/** Answers a malformed request. It needs no password, so it is logged at debug level only. */
function malformed(error: unknown, log: Logger, requestId: string): Response {
  log.debug({ requestId, reason: errorText(error) }, 'malformed request');
  return problemResponse(new AppError('invalid', 'The request is malformed.'), requestId);
}

/** Interval at which the file with the credentials is read. */
const credentialsIntervalMs = 500;

/** Accepts the credential pairs of the variables, or those of the file, which is read again while the receiver runs. */
function startCredentials({ credentials: { source, pairs }, dataDir }: StartConfig, log: Logger) {
  let inFile = pairs;
  let accepted = pairs;
  let check = createCredentialCheck(accepted);
  let reported = '';
  const report = (reason: string) => {
    const failed = 'failed to reload endpoint credentials; the previous credentials stay valid';
    if (reason !== reported) log.error({ reason }, failed);
    reported = reason;
  };
  const reload = () => {
    try {
      const read = readCredentialsFile(dataDir);
      if (read === null) return report('the file is missing');
      reported = '';
      if (isDeepStrictEqual(read, inFile)) return;
      inFile = read;
      accepted = acceptedAfter(accepted, read, log);
      check = createCredentialCheck(accepted);
      log.info({ accepted: accepted.length }, 'reloaded endpoint credentials');
    } catch (error) {
      report(errorText(error));
    }
  };
  const timer = source === 'file' ? setInterval(reload, credentialsIntervalMs).unref() : undefined;
  return {
    checkCredentials: (authorization: string | undefined) => check(authorization),
    accepted: () => accepted,
    stop: () => clearInterval(timer),
  };
}

/**
 * Each step of a rotation keeps one accepted pair. If all pairs are new, the file was replaced outside
 * a rotation and the catalogue still uses the old pairs: they stay accepted until the next start.
 */
function acceptedAfter(
  accepted: CredentialPairs,
  pairs: CredentialPairs,
  log: Logger,
): CredentialPairs {
  const isAccepted = (pair: CredentialPairs[number]) =>
    accepted.some((one) => one.username === pair.username && one.password === pair.password);
  if (pairs.some(isAccepted)) return pairs;
  log.warn(
    {},
    'replaced all endpoint credentials; the old ones are accepted until the receiver restarts',
  );
  return [...accepted, ...pairs];
}

function urlOf({ address: { host, port } }: Listener, secure: boolean): string {
  return `${secure ? 'https' : 'http'}://${hostInUrl(host)}:${port}`;
}

/** Returns what the parts of the status read. The background jobs are set once they have started. */
function statusSourcesOf(
  config: StartConfig,
  { store, readiness, log }: { store: Store; readiness: Readiness; log: Logger },
  io: Io,
): { sources: StatusSources } & Pick<RunningReceiver, 'setBackgroundJobs'> {
  const startedAtUs = io.nowUs();
  let background: Parameters<RunningReceiver['setBackgroundJobs']>[0] | null = null;
  const refusing = async (): Promise<string | null> => {
    const [reason] = await readiness();
    if (reason === undefined) return null;
    return reason === 'store'
      ? store.checkWritable().then(() => null, errorText)
      : refusals[reason];
  };
  const sources: StatusSources = {
    store,
    setting: (name) => config[name],
    receiver: async () => ({
      ...{ startedAtUs, pid: io.pid, refusing: await refusing(), queue: store.queue() },
    }),
    running: {
      store,
      job: (name) => background?.jobs.get(name),
    },
    get version() {
      return background?.version ?? 'unknown';
    },
    io,
    log,
  };
  const setBackgroundJobs: RunningReceiver['setBackgroundJobs'] = (running) => {
    background = running;
  };
  return { sources, setBackgroundJobs };
}

/** The user name that belongs to EARSHOT_CONSOLE_PASSWORD. */
const username = 'earshot';

/** For the viewers of 16 live streams, each with a few connections, 64 readers of the feed, and some programs. */
const connectionsMax = 200;

/** Time to send an answer of a thousand records at shutdown. */
const consoleGraceMs = 2_000;

/** Data of the private listener. Features declare the parts of their services. */
type QueryParts = Pick<ConsoleOptions, 'status' | 'statusParts' | 'setting' | 'readiness' | 'log'> &
  Partial<ConsoleOptions> & { store: Store };

/**
 * Opens the private listener. Returns its address, for example `http://127.0.0.1:8080`; null for none. Failures are
 * logged; intake continues without queries.
 */
async function serveQueries(
  { console }: Pick<StartConfig, 'console'>,
  { store, ...parts }: QueryParts,
  { nowUs, newId, features, env }: Io,
): Promise<{ consoleUrl: string | null; close(): Promise<void> }> {
  const none = { consoleUrl: null, close: async () => undefined };
  if (console === null) return none;
  const { listen, password, url: consoleUrl, ...served } = console;
  const closing = new AbortController();
  const gate = { log: parts.log, nowUs, newRequestId: newId };
  const checkCredentials = createCredentialCheck([{ username, password: password ?? '' }]);
  const authorize =
    password === undefined
      ? null
      : createGate({ ...gate, checkCredentials, blocksAddresses: true }, () => undefined);
  const tables = tablesOf(features).map(({ group }) => [group, Reflect.get(store, group)]);
  const options = {
    ...{ ...Object.fromEntries(tables), notifications: store, quarantine: store },
    ...{ ...parts, ...served, ...gate, consoleUrl, authorize, closing: closing.signal },
    ...{ slots: await loadListenerSlots(features), programName: nameCalled(env) },
    listenHost: listen.host,
  };
  try {
    const opened = await startListener({
      // Each group of tables is a port of the store.
      ...{ fetch: createConsoleApp(options as unknown as ConsoleOptions).fetch, listen },
      ...{ listenVariable: 'EARSHOT_CONSOLE_LISTEN', limits: { connectionsMax } },
      onBadRequest: (error) => malformed(error, parts.log, newId()),
    });
    const close = () => {
      closing.abort();
      return opened.close(consoleGraceMs);
    };
    return { consoleUrl: localUrl(opened.address), close };
  } catch (error) {
    if (!isAppError(error, 'configuration')) throw error;
    const message = 'failed to open the private listener; notifications are still accepted';
    parts.log.error({ reason: errorText(error) }, message);
    return none;
  }
}

/** Maximum time for one small commit. A slower disk delays senders for too long. */
const writeTimeoutMs = 3_000;

export function createReadiness({
  store,
  certificate,
  nowUs,
  timeoutMs = writeTimeoutMs,
}: {
  store: Pick<Store, 'checkWritable' | 'isWriterRunning'>;
  /** Absent behind a proxy, which has the certificate. */
  certificate?: Pick<ServedCertificate, 'served'> | undefined;
  nowUs: () => number;
  timeoutMs?: number;
}): Readiness {
  const writeFault = (): Promise<UnreadyReason[]> =>
    store.checkWritable().then(
      () => [],
      () => [store.isWriterRunning() ? 'store' : 'writer'],
    );
  return async () => {
    const found = await within(timeoutMs, writeFault(), (): UnreadyReason[] => ['writer']);
    const served = certificate?.served();
    if (served === undefined) return found;
    const now = nowUs();
    const isValid = served !== null && served.notBeforeUs <= now && now < served.notAfterUs;
    return isValid ? found : [...found, 'certificate'];
  };
}
