/** The doctor's checks of the certificate that the endpoint serves. */
import type { Finding } from '../../domain/finding.ts';
import { wholeDays } from '../../domain/whole-days.ts';
import type { ProbeEndpoint, ProbeReport } from '../endpoint/endpoint-probe.ts';
import { probeStages, type SeenTls } from '../endpoint/probe-fault.ts';

/** Certificates are renewed with a third of their life left: with less than this, that has stopped. */
const shareLeftWarn = 1 / 6;

/**
 * Probes without credentials. `withExtra` trusts EARSHOT_PROBE_CA too, and is asked where `publicly`
 * fails; null without that variable. Gives the probe that reaches the endpoint; null when none does.
 */
export async function checkCertificate(options: {
  endpoint: string;
  publicly: ProbeEndpoint;
  withExtra: ProbeEndpoint | null;
  nowUs: () => number;
}): Promise<{ findings: Finding[]; probe: ProbeEndpoint | null }> {
  const check = 'certificate';
  const { endpoint, publicly, withExtra, nowUs } = options;
  const report = await publicly(endpoint, null);
  if (isTrusted(report)) {
    const message = `It is publicly trusted and for the right name${by(report.tls)}.`;
    const findings: Finding[] = [{ check, state: 'pass', message }];
    return { findings: [...findings, ...tlsFindings(report.tls, nowUs)], probe: publicly };
  }
  const second = withExtra === null ? report : await withExtra(endpoint, null);
  if (isTrusted(second)) {
    const message = `NOT PUBLICLY TRUSTED: it passes because of EARSHOT_PROBE_CA alone${by(second.tls)}.`;
    const advice =
      'Fine for a test; the catalogue refuses it, so get one of a public authority before you register.';
    const findings: Finding[] = [{ check, state: 'warn', message, advice }];
    return { findings: [...findings, ...tlsFindings(second.tls, nowUs)], probe: withExtra };
  }
  const { message = '', advice = '' } = second.fault ?? {};
  return { findings: [{ check, state: 'fail', message, advice }], probe: null };
}

/** The handshake went well when the fault, if there is one, lies behind it. */
function isTrusted({ fault }: ProbeReport): boolean {
  return fault === null || probeStages.indexOf(fault.stage) > probeStages.indexOf('certificate');
}

function tlsFindings(tls: SeenTls | null, nowUs: () => number): Finding[] {
  if (tls === null) return [];
  const check = 'certificate validity';
  const leftMs = tls.notAfter.getTime() - nowUs() / 1000;
  const daysLeft = wholeDays(leftMs * 1_000);
  const message = `${daysLeft} ${daysLeft === 1 ? 'day' : 'days'} left, until ${tls.notAfter.toISOString().slice(0, 10)}.`;
  const lifetimeMs = tls.notAfter.getTime() - tls.notBefore.getTime();
  const advice = 'Renew it, and find out why that has not happened by itself.';
  const validity: Finding =
    leftMs >= lifetimeMs * shareLeftWarn
      ? { check, state: 'pass', message }
      : { check, state: 'warn', message, advice };
  // The probe itself speaks nothing older than 1.2.
  return [validity, { check: 'TLS version', state: 'pass', message: `${tls.protocol}.` }];
}

function by(tls: SeenTls | null): string {
  return tls === null ? '' : ` (issuer: ${tls.issuer})`;
}
