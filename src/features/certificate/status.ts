/** The certificate in the status, on the page and in the doctor, and its alert. */

import { z } from 'zod';
import { type DoctorSlot, needsOf } from '../../core/doctor/steps.ts';
import { flag, moment, seconds, toSeconds } from '../../core/status/gauge.ts';
import type { Status } from '../../core/status/status.ts';
import { defineStatusPart, type StatusSources, watchOne } from '../../core/status/status.ts';
import { dayUs, formatDateUs, shortDateUs } from '../../core/terms/dates.ts';
import {
  checkOf,
  type Evaluation,
  evaluate,
  evaluation,
  type Finding,
  failedFinding,
  finding,
  ok,
  problem,
  type Situation,
} from '../../core/terms/evaluation.ts';
import { nextStepOf } from '../../core/terms/faults.ts';
import * as report from '../../core/terms/report.ts';
import { lengthText, momentText, quoted } from '../../core/terms/text.ts';
import { certificateFault, loadCertificateFiles } from './certificate.ts';
import { renewalStatus } from './renewal.ts';
import type { ServedTls, TlsConfig } from './settings.ts';

const timeUs = z.number().nullable();

const certificateSchema = z.object({
  notAfterUs: timeUs.describe('End of the validity; null until the first certificate is issued.'),
  lifetimeUs: timeUs,
  lastAttemptAtUs: timeUs.describe(
    'Time of the last renewal attempt by earshot; null with EARSHOT_TLS=files.',
  ),
  lastSuccessAtUs: timeUs,
  lastFailure: z
    .string()
    .nullable()
    .describe('Reason why the last renewal failed; null if the renewal succeeded.'),
});

type CertificateStatus = z.infer<typeof certificateSchema>;

/** The certificate of the public listener. Times are null before the first one. */
export type Certificate = Pick<CertificateStatus, 'notAfterUs' | 'lifetimeUs' | 'lastFailure'>;

declare module '../../core/status/status.ts' {
  interface StatusFacts {
    /** True if a proxy terminates HTTPS. */
    behindProxy: boolean;
    certificate: CertificateStatus | null;
  }
}

/** Reads the certificate, the attempts to renew it, and their part of the status. Null: not known, or none. */
export function readCertificateStatus(tls: ServedTls, dataDir: string) {
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

/** Reads the files, not the served certificate: the receiver loads changed files within seconds. Null behind a proxy. */
function readOwn({ setting }: StatusSources): CertificateStatus | null {
  const tls = setting('tls');
  return tls.kind === 'off' ? null : readCertificateStatus(tls, setting('dataDir')).status;
}

/**
 * Remaining time at which the alert is raised: a fifth of the lifetime, as automatic renewal starts at a third
 * (decision 14), and at most a month. It is critical at half of that, and at most two days.
 */
const limits = { share: 1 / 5, maxUs: 30 * dayUs, criticalMaxUs: 2 * dayUs };

export const certificateCheck = checkOf<Certificate | null>(
  'certificate',
  (certificate, { nowUs }) => {
    if (certificate?.notAfterUs == null || certificate.lifetimeUs === null) return null;
    const { notAfterUs, lifetimeUs, lastFailure } = certificate;
    const leftUs = notAfterUs - nowUs;
    const limitUs = Math.min(limits.maxUs, limits.share * lifetimeUs);
    if (leftUs > limitUs) return null;
    return problem(
      leftUs < Math.min(limits.criticalMaxUs, limitUs / 2) ? 'critical' : 'warning',
      `The certificate ${leftUs <= 0 ? 'has expired' : `expires in ${lengthText(leftUs)}`} and has not been renewed. After its end, the catalogue delivers no notifications.`,
      'To see why, run `earshot certificate show`. If you set EARSHOT_TLS_CERT and EARSHOT_TLS_KEY, renew these files.',
      `The certificate is valid until ${momentText(notAfterUs)}.`,
      lastFailure !== null && `The last renewal failed: ${quoted(lastFailure)}`,
    );
  },
);

/** Evaluates the certificate. */
export function evaluateCertificate(
  certificate: Certificate | null,
  situation: Situation,
): Evaluation {
  const { notAfterUs = null, lastFailure = null } = certificate ?? {};
  if (notAfterUs === null) {
    return evaluation(
      'critical',
      'There is no certificate yet, so the catalogue cannot reach this endpoint.',
      'A running receiver orders it, and retries automatically. To order it now: `earshot certificate renew`.',
      lastFailure !== null && `Last error: ${lastFailure}`,
    );
  }
  const failure = lastFailure === null ? '' : '; the last renewal failed';
  const fine = ok(`valid for another ${lengthText(notAfterUs - situation.nowUs)}${failure}`);
  return evaluate([certificateCheck], certificate, { situation, fine });
}

const part = defineStatusPart({
  name: 'certificate',
  unknown: { behindProxy: false, certificate: null },
  fields: {
    behindProxy: z
      .boolean()
      .describe('True if a reverse proxy terminates HTTPS and has the certificate.'),
    certificate: certificateSchema
      .nullable()
      .describe('Null behind a proxy, and before the first certificate.'),
  },
  open: (sources) => ({
    read: async () => ({
      behindProxy: sources.setting('listen') !== null && sources.setting('tls').kind === 'off',
      certificate: readOwn(sources),
    }),
    watch: () => [watchOne(certificateCheck, async () => readOwn(sources))],
  }),
  evaluate: ({ hasEndpoint, behindProxy, certificate }, situation) => {
    if (!hasEndpoint) return ok('not needed: no public listener is configured');
    if (behindProxy) return ok('provided by the proxy');
    return evaluateCertificate(certificate, situation);
  },
  alertKinds: ['certificate'],
  // Absent behind a proxy; those of the certificate itself also before the first one.
  metrics: {
    Certificate: [
      moment(
        'earshot_certificate_not_after_timestamp_seconds',
        'Expiry time of the certificate. Remaining seconds: this value minus time().',
        ({ certificate }) => toSeconds(certificate?.notAfterUs),
      ),
      seconds(
        'earshot_certificate_lifetime_seconds',
        'Total validity of the certificate.',
        ({ certificate }) => toSeconds(certificate?.lifetimeUs),
      ),
      moment(
        'earshot_certificate_renewal_attempt_timestamp_seconds',
        'Time of the last renewal attempt by earshot; absent with EARSHOT_TLS=files.',
        ({ certificate }) => toSeconds(certificate?.lastAttemptAtUs),
      ),
      flag(
        'earshot_certificate_renewal_succeeded',
        '1 if the last renewal attempt succeeded.',
        ({ certificate }) =>
          certificate?.lastAttemptAtUs == null ? null : certificate.lastFailure === null,
      ),
    ],
  },
});

export const parts = [part];

/** The certificate on the page of subscriptions. */
export function endpointBlocks({ certificate, behindProxy, parts }: Status): report.Block[] {
  const part = parts.find((one) => one.part === 'certificate');
  return [
    report.evaluations(part === undefined ? [] : [['certificate', part]], { all: true }),
    report.facts(
      ['certificate expires (UTC)', report.time(certificate?.notAfterUs)],
      ['last renewal (UTC)', report.time(certificate?.lastSuccessAtUs)],
      ['last attempt (UTC)', report.time(certificate?.lastAttemptAtUs)],
      ['last failure', certificate?.lastFailure ?? null],
    ),
    report.commands(!behindProxy && ['Show the certificate', `earshot certificate show`]),
  ];
}

/** The doctor's check of the certificate: no step if no public listener is configured. */
export const stepsOf: DoctorSlot['stepsOf'] = async (settings, { nowUs }) => {
  const { hasEndpoint, serve, publicUrl, dataDir } = settings;
  if (!hasEndpoint) return [];
  const host = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  const run = async () => [
    checkCertificate(serve?.tls ?? { kind: 'off' }, { host, dataDir, nowUs: nowUs() }),
  ];
  return [{ name: 'certificate', needs: needsOf(serve), run }];
};

/** Checks the configured kind of certificate. A failed renewal is a warning: the next attempt is automatic. */
export function checkCertificate(
  tls: TlsConfig,
  { host, dataDir, nowUs }: { host: string | undefined; dataDir: string; nowUs: number },
): Finding {
  const ok = (text: string) => finding('certificate', 'ok', text);
  if (tls.kind === 'off') return ok('EARSHOT_TLS=off: the proxy provides the certificate.');
  try {
    const { certificate, renewsAtUs, status } = readCertificateStatus(tls, dataDir);
    if (status.lastFailure !== null) {
      const text = `The last attempt failed. ${status.lastFailure}`;
      return finding('certificate', 'warning', text, 'Retry with `earshot certificate renew`.');
    }
    if (renewsAtUs !== null) return ok(`Next renewal: ${shortDateUs(renewsAtUs)} UTC.`);
    if (tls.kind === 'acme' || certificate === null)
      return ok(`There is no certificate for ${host} yet. \`earshot start\` orders it.`);
    const fault = certificateFault(certificate, { host, nowUs });
    if (fault !== null) {
      const text = `${tls.cert}: ${fault.clause}.`;
      const found = finding('certificate', 'critical', text, nextStepOf(fault));
      return { ...found, code: 'configuration' };
    }
    const day = formatDateUs(certificate.notAfterUs).slice(0, 10);
    return ok(`Key and certificate match. Valid until ${day}.`);
  } catch (error) {
    const nextStep =
      'Set EARSHOT_TLS_CERT and EARSHOT_TLS_KEY to the files of a valid certificate of a public authority and its key.';
    return failedFinding('certificate', error, nextStep);
  }
}
