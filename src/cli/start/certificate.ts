/** Certificate of the public listener: from files, from a certificate authority, or none. */

import type { ServeConfig } from '../../config/config.ts';
import type { AcmeConfig } from '../../config/tls.ts';
import type { AcquireLock } from '../../domain/account.ts';
import { errorText } from '../../domain/app-error.ts';
import { startJob } from '../../domain/job.ts';
import type { Logger } from '../../domain/ports.ts';
import type { HandshakeOnly, KeyPair, Listener } from '../../http/listener.ts';
import type { AcmeContext } from '../../tls/acme.ts';
import { type OwnCertificate, renewalStatus } from '../../tls/acme-state.ts';
import {
  certificateFaults,
  type LoadedCertificate,
  loadCertificateFiles,
  watchCertificate,
  watchIntervalMs,
} from '../../tls/certificate.ts';
import { alpnAnswers, startChallengeListener } from '../../tls/challenge.ts';
import { type Io, pause } from '../io.ts';
import { type FileSync, sharedRenewal } from '../shared-files.ts';

export interface ServedCertificate {
  /** Key pair for the listener: undefined for plain HTTP, null for HTTPS without a certificate yet. */
  keyPair: KeyPair | null | undefined;
  handshakeOnly?: HandshakeOnly;
  /** Certificate in use: null while there is none, undefined for plain HTTP. */
  served(): Pick<LoadedCertificate, 'notBefore' | 'notAfter'> | null | undefined;
  /**
   * Keeps the listener's certificate up to date from now on. `syncFiles` copies the files of a shared log; null without
   * one.
   */
  follow(
    listener: Pick<Listener, 'setKeyPair' | 'address'>,
    shared: Shared,
  ): { stop(): void | Promise<void> };
}

interface Shared {
  acquireLock: AcquireLock;
  syncFiles: FileSync | null;
}

/** Settings for tests. */
export interface CertificateTuning {
  certificateWatchMs?: number;
}

type Given = [
  config: ServeConfig,
  log: Logger,
  io: Pick<Io, 'nowUs' | 'random'> & Partial<Pick<Io, 'fetch'>>,
  tuning?: CertificateTuning,
];

/** Rejects with `configuration` if the existing files cannot be used. */
export async function openServedCertificate(...given: Given): Promise<ServedCertificate> {
  const [{ tls, dataDir, publicUrl }, log, { nowUs }, tuning] = given;
  const intervalMs = tuning?.certificateWatchMs ?? watchIntervalMs;
  if (tls.kind === 'off') {
    const nothing = () => undefined;
    return { keyPair: undefined, served: nothing, follow: () => ({ stop: nothing }) };
  }
  const own: { latestOwn: OwnCertificate | null } = { latestOwn: null };
  const load = async () => {
    if (tls.kind === 'files') return loadCertificateFiles(tls);
    const { certificate, saved } = renewalStatus(dataDir, tls, own.latestOwn);
    own.latestOwn = certificate;
    // One of other settings is served only until there is one of these.
    return certificate ?? saved;
  };
  const host = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  const warn = (certificate: LoadedCertificate) => {
    // Served nevertheless: the catalogue decides.
    for (const fault of certificateFaults(certificate, { host, nowUs: nowUs() })) {
      log.warn({}, `certificate ${fault}; the catalogue will reject it`);
    }
  };
  let latest: LoadedCertificate | null = await load();
  if (latest !== null) warn(latest);
  const watch = (listener: Pick<Listener, 'setKeyPair'>) =>
    watchCertificate({
      ...{ load, current: latest, intervalMs },
      onChange: (changed) => {
        latest = changed;
        listener.setKeyPair({ cert: changed.cert, key: changed.key });
        log.info({ notAfter: changed.notAfter }, 'reloaded certificate');
        warn(changed);
      },
      onProblem: (problem) => {
        const reason = errorText(problem);
        log.error(
          { reason },
          'failed to reload certificate; the previous certificate stays in use',
        );
      },
    });
  return {
    keyPair: latest,
    ...(tls.kind === 'acme' ? { handshakeOnly: alpnAnswers(dataDir) } : {}),
    served: () => latest,
    follow: (listener, shared) => {
      const watching = watch(listener);
      if (tls.kind === 'files') return watching;
      const settings = { ...tls, dataDir, listen: listener.address, intervalMs };
      const renewal = startRenewal(settings, shared, given, async (context) => {
        // Loaded on demand: the ACME client takes 20 MB of memory.
        const { renew } = await import('../../tls/acme.ts');
        if (await renew(context, 'due', own.latestOwn)) await watching.check();
      });
      return { stop: () => renewal.stop().then(watching.stop) };
    },
  };
}

/** With a shared log, the port for http-01 is always open: any receiver may be asked for the response of another one. */
function startRenewal(
  settings: AcmeConfig & Pick<AcmeContext, 'dataDir' | 'listen'> & { intervalMs: number },
  { acquireLock, syncFiles }: Shared,
  [, log, { nowUs, random, fetch: ask = fetch }]: Given,
  renewIfDue: (context: AcmeContext) => Promise<void>,
) {
  const { dataDir, listen, intervalMs } = settings;
  let listener: Listener | null = null;
  const run = async (signal: AbortSignal) => {
    if (syncFiles !== null && settings.challenge === 'http-01') {
      listener ??= await startChallengeListener(dataDir, settings);
    }
    const shared = sharedRenewal(acquireLock, syncFiles, signal);
    const own = { nowUs, random, fetch: ask, lockWaitMs: 0, signal };
    await renewIfDue({ settings, dataDir, listen, ...shared, ...own });
  };
  const every = { firstMs: 0, intervalMs, retryMs: 6 * intervalMs, retryMsMax: 6 * 3_600_000 };
  const failed = 'failed to order certificate';
  const job = startJob({ every, run, failed }, { pause, random, log });
  return { stop: () => job.stop().then(async () => listener?.close(0)) };
}
