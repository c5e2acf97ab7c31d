/** Probes of the watchdog outside the store: certificate, disk, intake. */

import { errorText } from '../../core/terms/app-error.ts';
import type { Intake } from '../../core/terms/ports.ts';
import { type DataPlace, diskSpace } from '../../store/engine/disk-limit.ts';
import type { Store } from '../../store/store.ts';
import { renewalStatus } from '../certificate/acme-state.ts';
import { loadCertificateFiles } from '../certificate/certificate.ts';
import type { TlsConfig } from '../certificate/settings.ts';
import type { Probes } from '../status/probes.ts';
import type { CertificateStatus } from '../status/status.ts';

export function watchProbes(
  { tls, ...place }: DataPlace & { tls: TlsConfig },
  { checkWritable, node = null }: Pick<Intake, 'checkWritable'> & Partial<Pick<Store, 'node'>>,
): Probes<CertificateStatus> {
  return {
    // The files, not the served certificate: the receiver loads changed files within seconds. Null behind a proxy.
    certificate: async () =>
      tls.kind === 'off' ? null : readCertificateStatus(tls, place.dataDir).status,
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

/** Reads the certificate, the attempts to renew it, and their part of the status. Null: not known, or none. */
export function readCertificateStatus(tls: Exclude<TlsConfig, { kind: 'off' }>, dataDir: string) {
  const own = tls.kind === 'acme' ? renewalStatus(dataDir, tls) : null;
  const { saved = null, state = null, renewsAtUs = null } = own ?? {};
  const certificate = tls.kind === 'files' ? loadCertificateFiles(tls) : saved;
  const { notBeforeUs = null, notAfterUs = null } = certificate ?? {};
  const { lastAttemptAtUs = null, lastSuccessAtUs = null } = state ?? {};
  const lifetimeUs = notBeforeUs === null || notAfterUs === null ? null : notAfterUs - notBeforeUs;
  const lastFailure = state?.lastFailure?.text ?? null;
  const status = { notAfterUs, lifetimeUs, lastAttemptAtUs, lastSuccessAtUs, lastFailure };
  return { certificate, state, renewsAtUs, status };
}
