/** Probes of the watchdog outside the store: certificate, disk, intake. */
import type { TlsConfig } from '../../config/tls.ts';
import { errorText } from '../../domain/app-error.ts';
import type { Intake } from '../../domain/ports.ts';
import type { CertificateStatus } from '../../domain/status.ts';
import { type DataPlace, diskSpace } from '../../store/engine/disk-limit.ts';
import type { Store } from '../../store/store.ts';
import { lastFailureText, renewalStatus } from '../../tls/acme-state.ts';
import { type LoadedCertificate, loadCertificateFiles } from '../../tls/certificate.ts';
import type { Probes } from '../../watch/situation.ts';

export function watchProbes(
  { tls, ...place }: DataPlace & { tls: TlsConfig },
  { checkWritable, node = null }: Pick<Intake, 'checkWritable'> & Partial<Pick<Store, 'node'>>,
): Probes & { certificate(): Promise<CertificateStatus | null> } {
  return {
    certificate: () => certificateProbe(tls, place.dataDir),
    disk: async () => diskSpace(place),
    receivers: async () => {
      return node === null ? null : { ownId: node.id, nodes: await node.log.nodes() };
    },
    databaseWarnings: () => node?.log.warnings() ?? [],
    intake: async () => {
      try {
        await checkWritable();
        return null;
      } catch (error) {
        return errorText(error);
      }
    },
  };
}

const noRenewal = { lastAttemptAtUs: null, lastSuccessAtUs: null, lastFailure: null };

/** Checks the files, not the served certificate: the receiver loads changed files within seconds. Null behind a proxy. */
async function certificateProbe(
  tls: TlsConfig,
  dataDir: string,
): Promise<CertificateStatus | null> {
  if (tls.kind === 'off') return null;
  if (tls.kind === 'files') return { ...timesOf(await loadCertificateFiles(tls)), ...noRenewal };
  const { saved, state } = renewalStatus(dataDir, tls);
  const { lastAttemptAtUs, lastSuccessAtUs } = state;
  return {
    ...timesOf(saved),
    lastAttemptAtUs,
    lastSuccessAtUs,
    lastFailure: lastFailureText(state),
  };
}

function timesOf(certificate: LoadedCertificate | null) {
  if (certificate === null) return { notAfterUs: null, lifetimeUs: null };
  const notAfterUs = certificate.notAfter.getTime() * 1_000;
  return { notAfterUs, lifetimeUs: notAfterUs - certificate.notBefore.getTime() * 1_000 };
}
