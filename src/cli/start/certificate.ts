/** Certificate of the public listener: from files, from a certificate authority, or none. */

import type { ServeConfig } from '../../config/config.ts';
import type { AcmeConfig, TlsConfig } from '../../config/tls.ts';
import type { AcquireLock } from '../../domain/account.ts';
import { errorText } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { HandshakeOnly, KeyPair, Listener } from '../../http/listener.ts';
import {
  type LoadedCertificate,
  loadCertificateFiles,
  watchCertificateFiles,
  watchIntervalMs,
} from '../../tls/certificate.ts';
import type { Io } from '../io.ts';
import { type FileSync, sharedRenewal } from '../shared-files.ts';

/** Rejects with `configuration` if the configured files cannot be used. */
export async function openServedCertificate(
  config: ServeConfig,
  log: Logger,
  io: CertificateIo,
  tuning: CertificateTuning = {},
): Promise<ServedCertificate> {
  const { tls } = config;
  if (tls.kind === 'off') {
    const nothing = () => undefined;
    return { keyPair: undefined, served: nothing, follow: () => ({ stop: nothing }) };
  }
  let latest: LoadedCertificate | null = null;
  const onChange = (listener: Pick<Listener, 'setKeyPair'>) => (changed: LoadedCertificate) => {
    latest = changed;
    listener.setKeyPair({ cert: changed.cert, key: changed.key });
    log.info({ notAfter: changed.notAfter }, 'reloaded certificate');
    warn(changed);
  };
  const warn = (found: LoadedCertificate) => warnOfCertificate(found, config, log, io);
  const parts = { config, log, io, tuning, onChange, warn };
  const source = await openSource(tls, parts);
  latest = source.keyPair;
  return { ...source, served: () => latest };
}

async function openSource(tls: Exclude<TlsConfig, { kind: 'off' }>, parts: Served) {
  if (tls.kind === 'files') return fromFiles(tls, parts);
  return fromAuthority(tls, parts);
}

async function fromFiles(
  files: Extract<TlsConfig, { kind: 'files' }>,
  { log, tuning, onChange, warn }: Served,
): Promise<Source> {
  const current = await loadCertificateFiles(files);
  warn(current);
  return {
    keyPair: current,
    follow: (listener) =>
      watchCertificateFiles({
        files,
        current,
        intervalMs: tuning.certificateWatchMs ?? watchIntervalMs,
        onChange: onChange(listener),
        onProblem: (problem) => {
          const reason = errorText(problem);
          log.error(
            { reason },
            'failed to reload certificate files; the previous certificate stays in use',
          );
        },
      }),
  };
}

/** Logs problems of a certificate. It is served nevertheless: the catalogue decides. */
function warnOfCertificate(
  certificate: LoadedCertificate,
  { publicUrl }: ServeConfig,
  log: Logger,
  { nowUs }: CertificateIo,
): void {
  const { notAfter } = certificate;
  if (notAfter.getTime() * 1000 <= nowUs()) {
    log.warn({ notAfter }, 'certificate has expired; the catalogue will reject it');
  }
  if (certificate.selfSigned) {
    log.warn({}, 'certificate is self-signed; the catalogue will reject it');
  }
  const host = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  if (host !== undefined && !certificate.covers(host)) {
    log.warn({ host }, 'certificate is not valid for the host in EARSHOT_PUBLIC_URL');
  }
}

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
    listener: Pick<Listener, 'setKeyPair'>,
    shared: { acquireLock: AcquireLock; syncFiles: FileSync | null },
  ): { stop(): void | Promise<void> };
}

/** Settings for tests. */
export interface CertificateTuning {
  certificateWatchMs?: number;
  /** Directory of the staging authority, where orders are tested after a failure. */
  stagingUrl?: string | null;
}

/** Without `fetch`, a challenge port in use is never identified as that of another receiver. */
type CertificateIo = Pick<Io, 'nowUs' | 'random' | 'newId'> & Partial<Pick<Io, 'fetch'>>;

/** Source of the certificate, with the certificate that exists at the start. */
type Source = Omit<ServedCertificate, 'served'> & { keyPair: LoadedCertificate | null };

interface Served {
  config: ServeConfig;
  log: Logger;
  io: CertificateIo;
  tuning: CertificateTuning;
  onChange: (listener: Pick<Listener, 'setKeyPair'>) => (changed: LoadedCertificate) => void;
  /** Logs problems of a certificate. */
  warn: (found: LoadedCertificate) => void;
}

async function fromAuthority(
  settings: AcmeConfig,
  { config, log, io, tuning, onChange, warn }: Served,
): Promise<Source> {
  // The ACME client takes 20 MB of memory, so it is loaded on demand.
  const [{ alpnAnswers, createChallengeListener, noListener }, { openAcmeContext }, renewal] =
    await Promise.all([
      import('../../tls/acme/challenge.ts'),
      import('../../tls/acme/order.ts'),
      import('../../tls/acme/renew.ts'),
    ]);
  const stopper = new AbortController();
  let published = async () => {};
  const { fetch, newId } = io;
  const probe = fetch === undefined ? null : { fetch, newId };
  // With two receivers on one data directory, the one with the port answers for both.
  const challengeListener =
    settings.challenge === 'http-01'
      ? createChallengeListener(settings.httpListen, probe)
      : noListener;
  const context = openAcmeContext({
    settings,
    dataDir: config.dataDir,
    ...(tuning.stagingUrl === undefined ? {} : { stagingUrl: tuning.stagingUrl }),
    openListener: (challenges) => challengeListener.open(challenges),
    log,
    report: (step) => log.debug({ step }, 'certificate order'),
    ...io,
    signal: stopper.signal,
    published: () => published(),
  });
  const current = await context.folder.readCertificate();
  if (current === null) {
    const authority = new URL(settings.directoryUrl).host;
    log.info({ authority, host: settings.host }, 'no certificate yet; ordering one');
  } else warn(current);
  return {
    keyPair: current,
    ...(settings.challenge === 'tls-alpn-01'
      ? { handshakeOnly: alpnAnswers(context.challenges) }
      : {}),
    follow: (listener, { acquireLock: acquire, syncFiles }) => {
      let acquireLock = acquire;
      if (syncFiles !== null) {
        ({ acquireLock, published } = sharedRenewal(acquire, syncFiles, stopper.signal));
      }
      const checkEveryMs = tuning.certificateWatchMs;
      const loop = renewal.startRenewalLoop(
        {
          context,
          current,
          acquireLock,
          onCertificate: onChange(listener),
          log,
          ...(checkEveryMs === undefined ? {} : { checkEveryMs }),
        },
        stopper,
      );
      return { stop: () => loop.stop().then(() => challengeListener.close()) };
    },
  };
}
