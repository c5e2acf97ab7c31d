/** Certificate of the public listener: from files, from a certificate authority, or none. */

import { type Io, pause } from '../../core/cli/io.ts';
import type { ServeConfig } from '../../core/config/config.ts';
import { type Job, startJob } from '../../core/host/job.ts';
import type { AcquireLock } from '../../core/host/lock.ts';
import type { HandshakeOnly, KeyPair, Listener } from '../../core/http/listener.ts';
import { errorText } from '../../core/terms/app-error.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { type FileSync, sharedRenewal } from '../shared-log/shared-files.ts';
import type { AcmeContext } from './acme.ts';
import { readCertificate } from './acme-state.ts';
import { certificateFault, type LoadedCertificate, loadCertificateFiles } from './certificate.ts';
import { alpnAnswers, startChallengeListener } from './challenge.ts';
import type { AcmeConfig } from './settings.ts';

export interface ServedCertificate {
  handshakeOnly?: HandshakeOnly;
  /** Certificate and key in use: null while there is none, undefined for plain HTTP. */
  served(): (KeyPair & Pick<LoadedCertificate, 'notBeforeUs' | 'notAfterUs'>) | null | undefined;
  /**
   * Keeps the listener's certificate up to date from now on. `syncFiles` copies the files of a shared log; null without
   * one.
   */
  follow(listener: Pick<Listener, 'setKeyPair' | 'address'>, shared: Shared): Pick<Job, 'stop'>;
}

interface Shared {
  acquireLock: AcquireLock;
  syncFiles: FileSync | null;
}

type OwnIo = Pick<Io, 'nowUs' | 'random'> & Partial<Pick<Io, 'fetch'>>;

/** Rejects with `configuration` if the existing files cannot be used. */
export async function openServedCertificate(
  { tls, dataDir, publicUrl }: ServeConfig,
  log: Logger,
  io: OwnIo,
  // Polling works with links, mounts and containers.
  intervalMs = 10_000,
): Promise<ServedCertificate> {
  if (tls.kind === 'off') {
    return { served: () => undefined, follow: () => ({ stop: async () => undefined }) };
  }
  const host = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  const load = () => (tls.kind === 'files' ? loadCertificateFiles(tls) : readCertificate(dataDir));
  const warned = (certificate: LoadedCertificate | null) => {
    const fault = certificate && certificateFault(certificate, { host, nowUs: io.nowUs() });
    // Served nevertheless: the catalogue decides.
    if (fault !== null) log.warn({}, `${fault.clause}; the catalogue will reject it`);
    return certificate;
  };
  let latest = warned(load());
  let reported = '';
  /** Keeps the certificate in use while a new one is invalid: two files may be read between their changes. */
  const reload = (listener: Pick<Listener, 'setKeyPair'>) => {
    try {
      const loaded = load();
      reported = '';
      if (loaded === null || (loaded.cert === latest?.cert && loaded.key === latest.key)) return;
      latest = warned(loaded);
      listener.setKeyPair({ cert: loaded.cert, key: loaded.key });
      log.info({ notAfter: formatDateUs(loaded.notAfterUs) }, 'reloaded certificate');
    } catch (error) {
      const reason = errorText(error);
      const message = 'failed to reload certificate; the previous certificate stays in use';
      if (reason !== reported) log.error({ reason }, message);
      reported = reason;
    }
  };
  return {
    ...(tls.kind === 'acme' ? { handshakeOnly: alpnAnswers(dataDir) } : {}),
    served: () => latest,
    follow: (listener, shared) => {
      const timer = setInterval(reload, intervalMs, listener).unref();
      const place = { dataDir, listen: listener.address, intervalMs };
      const renewal =
        tls.kind === 'acme'
          ? startRenewal(tls, place, shared, { ...io, log, renewed: () => reload(listener) })
          : null;
      const stop = async () => {
        clearInterval(timer);
        await renewal?.stop();
      };
      return { stop };
    },
  };
}

/** With a shared log, the port for http-01 is always open: any receiver may be asked for the response of another one. */
function startRenewal(
  settings: AcmeConfig,
  { intervalMs, ...place }: Pick<AcmeContext, 'dataDir' | 'listen'> & { intervalMs: number },
  { acquireLock, syncFiles }: Shared,
  { log, renewed, fetch: ask = fetch, ...io }: OwnIo & { log: Logger; renewed: () => void },
): Pick<Job, 'stop'> {
  let listener: Listener | null = null;
  const run = async (signal: AbortSignal) => {
    if (syncFiles !== null && settings.challenge === 'http-01') {
      listener ??= await startChallengeListener(place.dataDir, settings);
    }
    // Loaded on demand: the ACME client takes 20 MB of memory.
    const { renew } = await import('./acme.ts');
    const shared = sharedRenewal(acquireLock, syncFiles, signal);
    if (await renew({ settings, ...place, ...shared, ...io, fetch: ask, signal }, 'due')) renewed();
  };
  const every = { firstMs: 0, intervalMs, retryMs: 6 * intervalMs, retryMsMax: 6 * 3_600_000 };
  const job = startJob(
    { every, run, failed: 'failed to order certificate' },
    { ...io, pause, log },
  );
  return { stop: () => job.stop().then(async () => listener?.close(0)) };
}
