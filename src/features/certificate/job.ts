/** Certificate of the public listener: from files, from a certificate authority, or none. */

import { type Io, pause } from '../../core/cli/io.ts';
import { type AcquireLock, type Job, startJob } from '../../core/host/job.ts';
import type { Listener } from '../../core/http/listener.ts';
import { errorText } from '../../core/terms/app-error.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { ServedCertificate, ServiceContext } from '../../receiver/slots.ts';
import type { FileSync, Store } from '../../store/store.ts';
import type { AcmeContext } from './acme.ts';
import { certificateFault, type LoadedCertificate, loadCertificateFiles } from './certificate.ts';
import { alpnAnswers, startChallengeListener } from './challenge.ts';
import { readCertificate } from './renewal.ts';
import type { AcmeConfig } from './settings.ts';

type OwnIo = Pick<Io, 'nowUs' | 'random' | 'fetch'>;

/** Rejects with `configuration` if the existing files cannot be used. */
export async function serveCertificate(
  { config: { tls, dataDir, publicUrl }, store, log, io }: ServiceContext,
  // Polling works with links, mounts and containers.
  intervalMs = 10_000,
): Promise<{ certificate?: ServedCertificate }> {
  if (tls.kind === 'off') return {};
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
  const { nowUs, random, fetch } = io;
  const own = { nowUs, random, fetch, log };
  const certificate: ServedCertificate = {
    ...(tls.kind === 'acme' ? { handshakeOnly: alpnAnswers(dataDir) } : {}),
    served: () => latest,
    follow: (listener) => {
      const timer = setInterval(reload, intervalMs, listener).unref();
      const place = { dataDir, listen: listener.address, intervalMs };
      const renewed = () => reload(listener);
      const renewal =
        tls.kind === 'acme' ? startRenewal(tls, place, store, { ...own, renewed }) : null;
      const stop = async () => {
        clearInterval(timer);
        await renewal?.stop();
      };
      return { stop };
    },
  };
  return { certificate };
}

/** With a shared log, the port for http-01 is always open: any receiver may be asked for the response of another one. */
function startRenewal(
  settings: AcmeConfig,
  { intervalMs, ...place }: Pick<AcmeContext, 'dataDir' | 'listen'> & { intervalMs: number },
  { acquireLock, shared }: Pick<Store, 'acquireLock' | 'shared'>,
  { log, renewed, ...io }: OwnIo & { log: Logger; renewed: () => void },
): Pick<Job, 'stop'> {
  let listener: Listener | null = null;
  const run = async (signal: AbortSignal) => {
    if (shared !== null && settings.challenge === 'http-01') {
      listener ??= await startChallengeListener(place.dataDir, settings);
    }
    // Loaded on demand: the ACME client takes 20 MB of memory.
    const { renew } = await import('./acme.ts');
    const steps = sharedRenewal(acquireLock, shared?.syncFiles ?? null, signal);
    if (await renew({ settings, ...place, ...steps, ...io, signal }, 'due')) renewed();
  };
  const every = { firstMs: 0, intervalMs, retryMs: 6 * intervalMs, retryMsMax: 6 * 3_600_000 };
  const job = startJob(
    { every, run, failed: 'failed to order certificate' },
    { ...io, pause, log },
  );
  return { stop: () => job.stop().then(async () => listener?.close(0)) };
}

/** Longer than two rounds of the other receivers. */
const othersMs = 2_500;

/**
 * Parts of a certificate renewal. With a shared log, one receiver orders, and all answer its challenges; `sync` is null
 * without one.
 */
export function sharedRenewal(
  acquireLock: AcquireLock,
  sync: FileSync | null,
  signal: AbortSignal,
): { acquireLock: AcquireLock; published: () => Promise<void> } {
  if (sync === null) return { acquireLock, published: async () => undefined };
  return {
    acquireLock: async (name, options) => {
      const release = await acquireLock(name, options);
      try {
        // Another receiver may have just ordered.
        await sync();
      } catch (error) {
        release();
        throw error;
      }
      // The lease expires if the process ends first.
      return () => void sync().then(release, release);
    },
    published: async () => {
      await sync();
      await pause(othersMs, signal);
    },
  };
}
