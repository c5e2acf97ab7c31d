/** What the watchdog measures outside the store: certificate, disk, intake. */

import type { TlsConfig } from '../config/tls-config.ts';
import { errorText } from '../domain/app-error.ts';
import type { Intake } from '../domain/ports.ts';
import type { CertificateStatus } from '../domain/status.ts';
import { type DataPlace, diskRoom } from '../store/engine/disk-limit.ts';
import { certificateFacts } from '../tls/certificate-facts.ts';
import { loadCertificateFiles } from '../tls/certificate-files.ts';
import type { Probes } from '../watch/watch-world.ts';
import type { Io } from './io.ts';

export function watchProbes(
  { tls, ...place }: DataPlace & { tls: TlsConfig },
  intake: Pick<Intake, 'checkWritable'>,
  { nowUs }: Pick<Io, 'nowUs'>,
): Probes & { certificate(): Promise<CertificateStatus | null> } {
  return {
    certificate: () => certificateProbe(tls, place.dataDir, nowUs),
    disk: async () => diskRoom(place),
    intake: async () => {
      try {
        await intake.checkWritable();
        return null;
      } catch (error) {
        return errorText(error);
      }
    },
  };
}

const noRenewal = { lastAttemptAtUs: null, lastSuccessAtUs: null, lastFailure: null };

/** From the files: what is served follows them within minutes. Null behind a proxy. */
async function certificateProbe(tls: TlsConfig, dataDir: string, nowUs: () => number) {
  if (tls.kind === 'off') return null;
  if (tls.kind === 'files') return probed((await loadCertificateFiles(tls)).cert, noRenewal);
  const [{ openAcmeFolder }, { renewalOutlook }, { lastFailureText }] = await Promise.all([
    import('../tls/acme/acme-folder.ts'),
    import('../tls/acme/renewal-outlook.ts'),
    import('../tls/acme/renewal-state.ts'),
  ]);
  const folder = openAcmeFolder(dataDir);
  const { state } = await renewalOutlook(folder, tls, nowUs());
  const certificate = await folder.readCertificate();
  const { failures, lastAttemptAtUs, lastSuccessAtUs } = state;
  // That of an earlier time is kept when it has succeeded since.
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
