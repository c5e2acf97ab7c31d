/** The doctor's check of the certificate. */

import { type DoctorSettings, type DoctorSlot, needsOf } from '../../core/doctor/steps.ts';
import { type Finding, failedFinding, finding } from '../../core/terms/evaluation.ts';
import { checkRenewal } from './acme-state.ts';
import { checkCertificateFiles } from './certificate.ts';

/** Returns no step if all subscriptions are pull. */
export const stepsOf: DoctorSlot['stepsOf'] = async (settings, { nowUs }) => {
  if (!settings.hasEndpoint) return [];
  const run = async () => [checkCertificate(settings, nowUs())];
  return [{ name: 'certificate', needs: needsOf(settings.serve), run }];
};

/** Checks the configured kind of certificate. */
function checkCertificate({ serve, publicUrl, dataDir }: DoctorSettings, nowUs: number): Finding {
  const check = 'certificate';
  const host = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  try {
    if (serve?.tls.kind === 'acme') return checkRenewal(dataDir, serve.tls);
    if (serve?.tls.kind === 'files') return checkCertificateFiles(serve.tls, { host, nowUs });
    return finding(check, 'ok', 'EARSHOT_TLS=off: the proxy provides the certificate.');
  } catch (error) {
    const nextStep =
      'Set EARSHOT_TLS_CERT and EARSHOT_TLS_KEY to the files of a valid certificate of a public authority and its key.';
    return failedFinding(check, error, nextStep);
  }
}
