/** Composes the receiver: store, certificate, listener; and takes it apart again in reverse. */

import type { CredentialPairs } from '../config/endpoint-credentials.ts';
import type { ServeConfig } from '../config/read-config.ts';
import { watchCredentialsFile } from '../config/watch-credentials.ts';
import { AppError } from '../domain/app-error.ts';
import type { Logger } from '../domain/ports.ts';
import { type Listener, type ListenerLimits, startListener } from '../http/listener.ts';
import { problemResponse } from '../http/problem.ts';
import { type CredentialCheck, createCredentialCheck } from '../receiver/basic-auth.ts';
import { createReceiverApp } from '../receiver/receiver-app.ts';
import { openStore, type Store } from '../store/store.ts';
import {
  type CertificateFiles,
  type LoadedCertificate,
  loadCertificateFiles,
} from '../tls/certificate-files.ts';
import { watchCertificateFiles, watchIntervalMs } from '../tls/watch-certificate-files.ts';
import { createClosers } from './closers.ts';
import { startDeliveryMarks } from './delivery-marks.ts';
import type { Io } from './io.ts';
import { startOutcomeSummary } from './outcome-summary.ts';

/** Time for requests in hand when the program ends. */
const graceMs = 10_000;

/** What tests make shorter. */
export interface ServeTuning {
  limits?: Partial<ListenerLimits>;
  certificateWatchMs?: number;
}

export interface RunningReceiver {
  /** Where the public listener is, such as `https://127.0.0.1:8443`. */
  url: string;
  store: Store;
  close(): Promise<void>;
}

/** Resolves when the receiver takes notifications; if a step fails, what was opened is closed. */
export async function serve(
  config: ServeConfig,
  log: Logger,
  io: Pick<Io, 'nowUs' | 'newId'>,
  tuning: ServeTuning = {},
): Promise<RunningReceiver> {
  const closers = createClosers();
  const { nowUs, newId } = io;
  try {
    const files = config.tls.kind === 'files' ? config.tls : null;
    const certificate = files === null ? undefined : await loadCertificateFiles(files);
    if (certificate !== undefined) warnOfCertificate(certificate, config, log, io);
    const store = await openStore({ dataDir: config.dataDir, nowUs });
    closers.add(() => store.close());
    const summary = startOutcomeSummary(log);
    closers.add(() => summary.stop());
    const { administration } = store;
    const marks = startDeliveryMarks({ administration, nowUs, log });
    closers.add(() => marks.stop());
    const credentials = startCredentials(config, log);
    closers.add(() => credentials.stop());
    const app = createReceiverApp({
      intake: store,
      checkCredentials: (authorization) => credentials.check(authorization),
      log,
      nowUs,
      newRequestId: newId,
      observe: summary.observe,
      onDelivered: marks.note,
    });
    const listener = await startListener({
      fetch: app.fetch,
      listen: config.listen,
      listenVariable: 'EARSHOT_LISTEN',
      onBadRequest: (err) => {
        const requestId = newId();
        const reason = err instanceof Error ? err.message : String(err);
        // Anybody can send these without a password, so they must not fill the log.
        log.debug({ requestId, reason }, 'request that cannot be read');
        return problemResponse(new AppError('invalid', 'The request cannot be read.'), requestId);
      },
      keyPair: certificate,
      ...(tuning.limits === undefined ? {} : { limits: tuning.limits }),
    });
    closers.add(() => listener.close(graceMs));
    if (files !== null && certificate !== undefined) {
      const watch = followCertificate(certificate, files, { config, listener, log, io, tuning });
      closers.add(() => watch.stop());
    }
    return { url: urlOf(listener, files !== null), store, close: closers.closeAll };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

/** Serves a renewed certificate as soon as its files are whole. */
function followCertificate(
  current: LoadedCertificate,
  files: CertificateFiles,
  world: {
    config: ServeConfig;
    listener: Listener;
    log: Logger;
    io: Pick<Io, 'nowUs'>;
    tuning: ServeTuning;
  },
): { stop(): void } {
  const { config, listener, log, io, tuning } = world;
  return watchCertificateFiles({
    files,
    current,
    intervalMs: tuning.certificateWatchMs ?? watchIntervalMs,
    onChange: (changed) => {
      listener.setKeyPair({ cert: changed.cert, key: changed.key });
      log.info({ notAfter: changed.notAfter }, 'certificate changed; serving the new one');
      warnOfCertificate(changed, config, log, io);
    },
    onProblem: (problem) => {
      const reason = problem instanceof Error ? problem.message : String(problem);
      log.error({ reason }, 'the changed certificate files cannot be used; serving the old one');
    },
  });
}

/** The pairs that are accepted: those of the variables for good, those of the file as it changes. */
function startCredentials(
  { credentials, credentialsSource, dataDir }: ServeConfig,
  log: Logger,
): { check: CredentialCheck; stop(): void } {
  let accepted = credentials;
  let check = createCredentialCheck(accepted);
  if (credentialsSource !== 'file') return { check, stop: () => undefined };
  const watch = watchCredentialsFile({
    dataDir,
    current: credentials,
    onChange: (pairs) => {
      accepted = successorsOf(accepted, pairs, log);
      check = createCredentialCheck(accepted);
      log.info({ accepted: accepted.length }, 'endpoint credentials changed');
    },
    onProblem: (reason) => {
      log.error({ reason }, 'the changed credentials cannot be used; those from before stay');
    },
  });
  return { check: (authorization) => check(authorization), stop: () => watch.stop() };
}

/**
 * A rotation keeps one pair at each of its steps. Pairs that are all new were made by somebody who
 * missed the old ones, and the catalogue still uses those: they stay until the next start.
 */
function successorsOf(
  accepted: CredentialPairs,
  pairs: CredentialPairs,
  log: Logger,
): CredentialPairs {
  const isAccepted = (pair: CredentialPairs[number]) =>
    accepted.some((one) => one.username === pair.username && one.password === pair.password);
  if (pairs.some(isAccepted)) return pairs;
  log.warn(
    {},
    'none of the changed credentials is known; the old ones stay accepted until a restart',
  );
  return [...accepted, ...pairs];
}

/** Such a certificate is served all the same: the catalogue decides, and the log says what is wrong. */
function warnOfCertificate(
  certificate: LoadedCertificate,
  { publicUrl }: ServeConfig,
  log: Logger,
  { nowUs }: Pick<Io, 'nowUs'>,
): void {
  const { notAfter } = certificate;
  if (notAfter.getTime() * 1000 <= nowUs()) {
    log.warn({ notAfter }, 'the certificate has expired; the catalogue will refuse it');
  }
  if (certificate.selfSigned) {
    log.warn({}, 'the certificate is signed by itself; the catalogue will refuse it');
  }
  const host = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  if (host !== undefined && !certificate.covers(host)) {
    log.warn({ host }, 'the certificate is not valid for the name in EARSHOT_PUBLIC_URL');
  }
}

function urlOf({ address: { host, port } }: Listener, secure: boolean): string {
  return `${secure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
