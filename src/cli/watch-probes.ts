/** What the watchdog measures outside the store: certificate, disk, intake. */
import { statfs } from 'node:fs/promises';
import type { TlsConfig } from '../config/tls-config.ts';
import type { Intake } from '../domain/ports.ts';
import { openAcmeFolder } from '../tls/acme/acme-folder.ts';
import { renewalOutlook } from '../tls/acme/renewal-outlook.ts';
import { certificateFacts } from '../tls/certificate-facts.ts';
import { loadCertificateFiles } from '../tls/certificate-files.ts';
import type { Probes } from '../watch/watch-world.ts';
import type { Io } from './io.ts';

export function watchProbes(
  { tls, dataDir }: { tls: TlsConfig; dataDir: string },
  intake: Pick<Intake, 'checkWritable'>,
  { nowUs }: Pick<Io, 'nowUs'>,
): Probes {
  return {
    certificate: () => certificateProbe(tls, dataDir, nowUs),
    disk: async () => {
      const { bavail, blocks, bsize, frsize } = await statfs(dataDir);
      // Some file systems, and those of the kernel's own, have no size.
      if (blocks === 0) return null;
      // Blocks are counted in `frsize`; `bsize` is the size to transfer, and may be larger (statfs(2)).
      const blockBytes = frsize || bsize;
      return { freeBytes: bavail * blockBytes, totalBytes: blocks * blockBytes };
    },
    intake: async () => {
      try {
        await intake.checkWritable();
        return null;
      } catch (error) {
        return error instanceof Error ? error.message : String(error);
      }
    },
  };
}

/** From the files: what is served follows them within minutes. Null behind a proxy, and before the first one. */
async function certificateProbe(tls: TlsConfig, dataDir: string, nowUs: () => number) {
  if (tls.kind === 'off') return null;
  if (tls.kind === 'files') return probed((await loadCertificateFiles(tls)).cert, null);
  const folder = openAcmeFolder(dataDir);
  const { state } = await renewalOutlook(folder, tls, nowUs());
  const certificate = await folder.readCertificate();
  if (certificate === null) return null;
  return probed(certificate.cert, state.lastFailure?.message ?? null);
}

function probed(chainPem: string, lastFailure: string | null) {
  const { validFrom, validTo } = certificateFacts(chainPem);
  const [fromUs, notAfterUs] = [validFrom.getTime() * 1_000, validTo.getTime() * 1_000];
  return { notAfterUs, lifetimeUs: notAfterUs - fromUs, lastFailure };
}
