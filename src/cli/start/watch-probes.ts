/** Probes of the watchdog outside the store: certificate, disk, intake. */
import type { TlsConfig } from '../../config/tls.ts';
import { errorText } from '../../domain/app-error.ts';
import type { Intake } from '../../domain/ports.ts';
import type { CertificateStatus } from '../../domain/status.ts';
import { type DataPlace, diskSpace } from '../../store/engine/disk-limit.ts';
import type { Store } from '../../store/store.ts';
import { certificateFacts, loadCertificateFiles } from '../../tls/certificate.ts';
import type { Probes } from '../../watch/situation.ts';
import type { Io } from '../io.ts';

export function watchProbes(
  { tls, ...place }: DataPlace & { tls: TlsConfig },
  { checkWritable, node = null }: Pick<Intake, 'checkWritable'> & Partial<Pick<Store, 'node'>>,
  { nowUs }: Pick<Io, 'nowUs'>,
): Probes & { certificate(): Promise<CertificateStatus | null> } {
  return {
    certificate: () => certificateProbe(tls, place.dataDir, nowUs),
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

/** Checks the certificate files, which the receiver reloads within minutes. Null behind a proxy. */
async function certificateProbe(tls: TlsConfig, dataDir: string, nowUs: () => number) {
  if (tls.kind === 'off') return null;
  if (tls.kind === 'files') return probed((await loadCertificateFiles(tls)).cert, noRenewal);
  const [{ lastFailureText, openAcmeFolder }, { renewalOutlook }] = await Promise.all([
    import('../../tls/acme/state.ts'),
    import('../../tls/acme/renewal-time.ts'),
  ]);
  const folder = openAcmeFolder(dataDir);
  const { state } = await renewalOutlook(folder, tls, nowUs());
  const certificate = await folder.readCertificate();
  const { failures, lastAttemptAtUs, lastSuccessAtUs } = state;
  // The state keeps the text of an earlier failure after a success.
  const lastFailure = failures === 0 ? null : lastFailureText(state);
  const renewal = { lastAttemptAtUs, lastSuccessAtUs, lastFailure };
  if (certificate === null) return { notAfterUs: null, lifetimeUs: null, ...renewal };
  return probed(certificate.cert, renewal);
}

function probed(
  chainPem: string,
  renewal: Omit<CertificateStatus, 'notAfterUs' | 'lifetimeUs'>,
): CertificateStatus {
  const { validFrom, validTo } = certificateFacts(chainPem);
  const [fromUs, notAfterUs] = [validFrom.getTime() * 1_000, validTo.getTime() * 1_000];
  return { notAfterUs, lifetimeUs: notAfterUs - fromUs, ...renewal };
}
