/** What the public listener shows: a certificate from files, from an authority, or none at all. */

import type { ServeConfig } from '../../config/config.ts';
import type { AcmeConfig, TlsConfig } from '../../config/tls.ts';
import { errorText } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { HandshakeOnly, KeyPair, Listener } from '../../http/listener.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import {
  type LoadedCertificate,
  loadCertificateFiles,
  watchCertificateFiles,
  watchIntervalMs,
} from '../../tls/certificate.ts';
import type { Io } from '../io.ts';

/** Rejects with `configuration` when files that are named cannot be used. */
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
    log.info({ notAfter: changed.notAfter }, 'certificate changed; serving the new one');
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
            'the changed certificate files cannot be used; serving the old one',
          );
        },
      }),
  };
}

/** Such a certificate is served all the same: the catalogue decides, and the log says what is wrong. */
function warnOfCertificate(
  certificate: LoadedCertificate,
  { publicUrl }: ServeConfig,
  log: Logger,
  { nowUs }: CertificateIo,
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

export interface ServedCertificate {
  /** As a listener takes it: undefined for plain HTTP, null for HTTPS that has no certificate yet. */
  keyPair: KeyPair | null | undefined;
  handshakeOnly?: HandshakeOnly;
  /** What is served now: null while there is none, undefined for plain HTTP. */
  served(): Pick<LoadedCertificate, 'notBefore' | 'notAfter'> | null | undefined;
  /** Keeps the listener's certificate up to date from now on. */
  follow(listener: Pick<Listener, 'setKeyPair'>): { stop(): void | Promise<void> };
}

/** What tests make shorter, or know better. */
export interface CertificateTuning {
  certificateWatchMs?: number;
  /** Where orders are rehearsed after a failure. */
  stagingUrl?: string | null;
}

/** Without `fetch`, a challenge port that another program has is never thought to be a receiver's. */
type CertificateIo = Pick<Io, 'nowUs' | 'random' | 'newId'> & Partial<Pick<Io, 'fetch'>>;

/** Where the certificate comes from, with the one that is there at the start. */
type Source = Omit<ServedCertificate, 'served'> & { keyPair: LoadedCertificate | null };

interface Served {
  config: ServeConfig;
  log: Logger;
  io: CertificateIo;
  tuning: CertificateTuning;
  onChange: (listener: Pick<Listener, 'setKeyPair'>) => (changed: LoadedCertificate) => void;
  /** Says in the log what is wrong with a certificate. */
  warn: (found: LoadedCertificate) => void;
}

async function fromAuthority(
  settings: AcmeConfig,
  { config, log, io, tuning, onChange, warn }: Served,
): Promise<Source> {
  // The ACME client and its formats take 20 MB of memory: they are loaded where they are needed.
  const [{ alpnAnswers, createChallengeListener, noListener }, { openAcmeContext }, renewal] =
    await Promise.all([
      import('../../tls/acme/challenge.ts'),
      import('../../tls/acme/order.ts'),
      import('../../tls/acme/renew.ts'),
    ]);
  const stopper = new AbortController();
  const { fetch, newId } = io;
  const asker = fetch === undefined ? null : { fetch, newId };
  // Of two receivers on one data directory, the one that has the port answers for both.
  const challengeListener =
    settings.challenge === 'http-01'
      ? createChallengeListener(settings.httpListen, asker)
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
  });
  const current = await context.folder.readCertificate();
  if (current === null) {
    const authority = new URL(settings.directoryUrl).host;
    log.info({ authority, host: settings.host }, 'there is no certificate yet; getting one');
  } else warn(current);
  return {
    keyPair: current,
    ...(settings.challenge === 'tls-alpn-01'
      ? { handshakeOnly: alpnAnswers(context.challenges) }
      : {}),
    follow: (listener) => {
      const acquireLock = createAcquireLock(config.dataDir);
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
