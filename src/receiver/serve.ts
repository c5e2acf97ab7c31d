/** Composes the receiver: store, index, certificate, listeners. Closes them in reverse order. */

import type { ConsoleOptions, Readiness, UnreadyReason } from '../core/api/app.ts';
import type { Io } from '../core/cli/io.ts';
import type { ServeConfig } from '../core/config/config.ts';
import { type CredentialPairs, watchCredentialsFile } from '../core/config/endpoint-credentials.ts';
import { createClosers } from '../core/host/closers.ts';
import { startIdleCollection } from '../core/host/memory.ts';
import { type Listener, type ListenerLimits, startListener } from '../core/http/listener.ts';
import { hostInUrl } from '../core/http/network-address.ts';
import { createProbeProofCheck } from '../core/http/probe-proof.ts';
import { problemResponse } from '../core/http/problem.ts';
import { AppError, errorText } from '../core/terms/app-error.ts';
import type { Logger, Receipt } from '../core/terms/ports.ts';
import { watchProbes } from '../features/alerts/watch-probes.ts';
import { openServedCertificate, type ServedCertificate } from '../features/certificate/job.ts';
import { createMetrics } from '../features/metrics/metrics.ts';
import {
  createFileSync,
  credentialsDigest,
  type FileSync,
} from '../features/shared-log/shared-files.ts';
import { type BackgroundJobs, createStatus, shownJobs } from '../features/status/read-status.ts';
import type { Products } from '../filter/products.ts';
import { openConfiguredStore } from '../store/open-configured.ts';
import type { Store } from '../store/store.ts';
import { createReceiverApp } from './app.ts';
import { createCredentialCheck, type GateOptions } from './basic-auth.ts';
import { createReadiness, serveQueries } from './console.ts';
import type { JobContext } from './job-slot.ts';
import { startDeliveryMarks, startOutcomeSummary } from './marks.ts';

/** Time for open requests at shutdown. */
const graceMs = 10_000;

/** Times that tests shorten. */
export interface ServeTuning {
  certificateWatchMs?: number;
  limits?: Partial<ListenerLimits>;
}

export interface RunningReceiver {
  /** Public listener, for example `https://127.0.0.1:8443`; null without one. */
  url: string | null;
  /** Private listener, for example `http://127.0.0.1:8080`; null for none. */
  consoleUrl: string | null;
  store: Store;
  /** The product index, which follows the log automatically. */
  products: Products;
  /** Copies the files of a shared log; null without one. */
  syncFiles: FileSync | null;
  /** Records and counts entries of the queue of a subscription. */
  notePulled(subscription: string, receipts: readonly Receipt[]): void;
  /** Returns the digest of the accepted credentials. */
  credentialsDigest(): string;
  /** False until the first certificate is issued; the receiver cannot be reached before that. */
  hasCertificate: boolean;
  /** Sets the state of the background jobs, for the status. */
  setBackgroundJobs(running: Pick<JobContext, 'version' | 'settings' | 'jobs'>): void;
  close(): Promise<void>;
}

/** Resolves when the receiver accepts notifications. If a step fails, closes what was opened. */
export async function serve(
  config: ServeConfig,
  log: Logger,
  io: Pick<Io, 'nowUs' | 'newId' | 'random' | 'features'> &
    Partial<Pick<Io, 'fetch' | 'pid' | 'env'>>,
  tuning: ServeTuning = {},
): Promise<RunningReceiver> {
  const closers = createClosers();
  const { nowUs, newId } = io;
  try {
    const certificate = await openServedCertificate(config, log, io, tuning.certificateWatchMs);
    const metrics = createMetrics(log);
    const store = await openConfiguredStore(config, io, { onCommit: metrics.noteCommit, log });
    closers.add(() => store.close());
    const syncFiles = store.node && createFileSync(config.dataDir, store.node.log.files);
    const summary = startOutcomeSummary(log);
    closers.add(() => summary.stop());
    const marks = startDeliveryMarks(store, { nowUs, log });
    closers.add(() => marks.stop());
    const notePulled: RunningReceiver['notePulled'] = (subscription, receipts) => {
      marks.note(subscription, '');
      for (const receipt of receipts) metrics.noteReceipt(subscription, receipt);
    };
    const credentials = startCredentials(config, log, nowUs);
    closers.add(() => credentials.stop());
    const idle = startIdleCollection(closers);
    const app = createReceiverApp({
      intake: store,
      ...credentials.accepts,
      log,
      nowUs,
      newRequestId: newId,
      trustedProxies: config.trustedProxies,
      observe: (...request) => {
        idle.note();
        summary.observe(request[0]);
        metrics.observe(...request);
      },
      onDelivered: marks.note,
    });
    const listener = await openListener(config, app.fetch, certificate, { log, newId, tuning });
    if (listener !== null) {
      closers.add(() => listener.close(graceMs));
      const renewal = certificate.follow(listener, { ...store, syncFiles });
      closers.add(() => renewal.stop());
    }
    const readiness = createReadiness({ store, certificate, nowUs });
    const { setBackgroundJobs, ...how } = serveStatus(config, { store, readiness, log }, io);
    const queries = await serveQueries(config, { store, ...how, metrics, readiness, log }, io);
    closers.add(() => queries.close());
    return {
      ...{
        url: listener && urlOf(listener, config.tls.kind !== 'off'),
        consoleUrl: queries.consoleUrl,
      },
      ...{ store, products: queries.products, hasCertificate: certificate.served() !== null },
      ...{ credentialsDigest: credentials.digest, notePulled },
      ...{ syncFiles, setBackgroundJobs },
      close: closers.closeAll,
    };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

/** Returns null if the receiver only reads queues. */
async function openListener(
  { listen }: ServeConfig,
  fetch: ReturnType<typeof createReceiverApp>['fetch'],
  { served, handshakeOnly }: ServedCertificate,
  { log, newId, tuning }: { log: Logger; newId: () => string; tuning: ServeTuning },
): Promise<Listener | null> {
  if (listen === null) return null;
  return startListener({
    ...{ fetch, listen, listenVariable: 'EARSHOT_LISTEN', keyPair: served(), handshakeOnly },
    onBadRequest: malformedResponse(log, newId),
    answersHalfClosed: true,
    ...(tuning.limits === undefined ? {} : { limits: tuning.limits }),
  });
}

/** Answers malformed requests. They need no password, so they are logged at debug level only. */
function malformedResponse(log: Logger, newId: () => string): (error: unknown) => Response {
  return (error) => {
    const requestId = newId();
    const reason = errorText(error);
    log.debug({ requestId, reason }, 'malformed request');
    return problemResponse(new AppError('invalid', 'The request is malformed.'), requestId);
  };
}

type Accepts = Pick<GateOptions, 'checkCredentials' | 'isProbeProof'>;

/** Accepts the credential pairs of the variables, or those of the file, which is reloaded when it changes. */
function startCredentials(
  { credentials: { source, pairs: current }, dataDir }: ServeConfig,
  log: Logger,
  nowUs: () => number,
): { accepts: Accepts; digest(): string; stop(): void } {
  let accepted = current;
  let check = createCredentialCheck(accepted);
  const checkProof = createProbeProofCheck(nowUs);
  const accepts: Accepts = {
    checkCredentials: (authorization) => check(authorization),
    isProbeProof: (value) => checkProof(value, accepted),
  };
  const digest = () => credentialsDigest(accepted);
  if (source !== 'file') return { accepts, digest, stop: () => undefined };
  const watch = watchCredentialsFile({
    dataDir,
    current,
    onChange: (pairs) => {
      accepted = acceptedAfter(accepted, pairs, log);
      check = createCredentialCheck(accepted);
      log.info({ accepted: accepted.length }, 'reloaded endpoint credentials');
    },
    onProblem: (reason) => {
      log.error(
        { reason },
        'failed to reload endpoint credentials; the previous credentials stay valid',
      );
    },
  });
  return { accepts, digest, stop: () => watch.stop() };
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

/** Background jobs of a receiver that has none, as in the demo. */
const noBackgroundJobs: BackgroundJobs = {
  version: 'unknown',
  deliveryState: () => ({ names: [], fault: null }),
  summaryMode: async () => 'off',
  backupEveryHours: null,
  comparisonOff: 'This receiver compares only on request.',
  hasAlertChannel: false,
};

/** Texts for the reasons of `/readyz`. The store reports its own. */
const refusals = {
  writer: 'The database writer does not answer.',
  certificate: 'There is no valid certificate.',
} as const satisfies Partial<Record<UnreadyReason, string>>;

/** Provides the status of a running receiver. Its background jobs are set once they have started. */
export function serveStatus(
  config: ServeConfig,
  { store, readiness, log }: { store: Store; readiness: Readiness; log: Logger },
  { nowUs, pid }: Pick<Io, 'nowUs'> & Partial<Pick<Io, 'pid'>>,
): Pick<ConsoleOptions, 'status' | 'comparisonOff' | 'hasAlertChannel'> &
  Pick<RunningReceiver, 'setBackgroundJobs'> {
  const { dataDir, index, tls } = config;
  const startedAtUs = nowUs();
  const probes = watchProbes(config, store);
  let backgroundJobs = noBackgroundJobs;
  const refusing = async (): Promise<string | null> => {
    const [reason] = await readiness();
    if (reason === undefined) return null;
    return reason === 'store' ? probes.intake() : refusals[reason];
  };
  const status = createStatus({
    ...{ store, dataDir, index, probes, nowUs, log },
    hasEndpoint: config.listen !== null,
    behindProxy: config.listen !== null && tls.kind === 'off',
    receiver: async () => ({
      ...{ startedAtUs, pid: pid ?? null, refusing: await refusing(), queue: store.queue() },
    }),
    backgroundJobs: () => backgroundJobs,
  });
  return {
    status,
    comparisonOff: () => backgroundJobs.comparisonOff,
    hasAlertChannel: () => backgroundJobs.hasAlertChannel === true,
    setBackgroundJobs: (running) => {
      backgroundJobs = shownJobs(running);
    },
  };
}
