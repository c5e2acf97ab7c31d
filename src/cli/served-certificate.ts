/** What the public listener shows: a certificate from files, from an authority, or none at all. */

import type { ServeConfig } from '../config/read-config.ts';
import type { TlsConfig } from '../config/tls-config.ts';
import { errorText } from '../domain/app-error.ts';
import type { Logger } from '../domain/ports.ts';
import type { Listener } from '../http/listener.ts';
import { type LoadedCertificate, loadCertificateFiles } from '../tls/certificate-files.ts';
import { watchCertificateFiles, watchIntervalMs } from '../tls/watch-certificate-files.ts';
import type {
  CertificateIo,
  CertificateTuning,
  Served,
  ServedCertificate,
  Source,
} from './certificate-source.ts';

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

/** What an authority takes (its client, its forms) is loaded where there is one. */
async function openSource(tls: Exclude<TlsConfig, { kind: 'off' }>, parts: Served) {
  if (tls.kind === 'files') return fromFiles(tls, parts);
  const { fromAuthority } = await import('./authority-certificate.ts');
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
