/** `earshot certificate show`: the certificate, and what becomes of it. */

import { readServedCertificateConfig } from '../../config/tls-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import { wholeDays } from '../../domain/whole-days.ts';
import { openAcmeFolder } from '../../tls/acme/acme-folder.ts';
import { renewalOutlook } from '../../tls/acme/renewal-outlook.ts';
import { lastFailureText } from '../../tls/acme/renewal-state.ts';
import { certificateFacts } from '../../tls/certificate-facts.ts';
import { loadCertificateFiles } from '../../tls/certificate-files.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { writeForeign, writeOut } from '../write-out.ts';

/** Every field is always there; times are ISO 8601 UTC. */
type Shown = Record<string, string | number | readonly string[] | null>;

/** Rejects with `not_found` when there is no certificate, after having shown what is known. */
export async function showCertificate(
  io: Io,
  { json, pem }: { json?: true; pem?: true },
): Promise<void> {
  const { tls, dataDir } = readServedCertificateConfig(io);
  const folder = openAcmeFolder(dataDir);
  const certificate =
    tls.kind === 'files' ? await loadCertificateFiles(tls) : await folder.readCertificate();
  const shown: Shown = {
    source: tls.kind,
    ...factsOf(certificate?.cert ?? null, io.nowUs()),
    ...(tls.kind === 'acme' ? await renewalOf(tls, dataDir, io) : noRenewal),
  };
  if (pem) await writeOut(io.stdout, certificate?.cert ?? '');
  else if (json) await writeForeign(io.stdout, `${JSON.stringify(shown, null, 2)}\n`);
  else if (certificate !== null) await writeOut(io.stdout, linesOf(shown, io));
  if (certificate !== null && tls.kind === 'acme' && shown.renewsAt === null) {
    io.stderr.write(
      `This is not the certificate that the settings ask for: for ${tls.host}, of ${new URL(tls.directoryUrl).host}. A running receiver gets that one.\n`,
    );
  }
  if (certificate === null) {
    throw noCertificate(shown.lastFailure ?? null);
  }
}

function noCertificate(lastFailure: Shown[string]): AppError {
  return new AppError('not_found', 'There is no certificate yet.', {
    advice: 'A running receiver gets one by itself; `earshot certificate renew` does it now.',
    details: lastFailure === null ? [] : [`The last try failed: ${lastFailure}`],
  });
}

function factsOf(chain: string | null, nowUs: number): Shown {
  const facts = chain === null ? null : certificateFacts(chain);
  const leftUs = facts === null ? null : facts.validTo.getTime() * 1_000 - nowUs;
  return {
    names: facts?.names ?? null,
    issuer: facts?.issuer ?? null,
    serialNumber: facts?.serialNumber ?? null,
    fingerprint: facts?.fingerprint ?? null,
    keyType: facts?.keyType ?? null,
    validFrom: facts?.validFrom.toISOString() ?? null,
    validTo: facts?.validTo.toISOString() ?? null,
    daysLeft: leftUs === null ? null : wholeDays(leftUs),
    chainLength: facts?.chainLength ?? null,
  };
}

async function renewalOf(
  settings: { directoryUrl: string; host: string },
  dataDir: string,
  { nowUs }: Io,
): Promise<Shown> {
  const outlook = await renewalOutlook(openAcmeFolder(dataDir), settings, nowUs());
  const { certificate, state, due } = outlook;
  const date = (atUs: number | null | undefined) =>
    atUs === null || atUs === undefined ? null : new Date(atUs / 1000).toISOString();
  return {
    authority: certificate?.directoryUrl ?? settings.directoryUrl,
    renewsAt: date(due?.atUs),
    renewsBecause: due?.because ?? null,
    failures: state.failures,
    lastAttemptAt: date(state.lastAttemptAtUs),
    lastSuccessAt: date(state.lastSuccessAtUs),
    lastFailure: lastFailureText(state),
    nextTryAt: date(state.nextTryAtUs),
    issuedLastDay: outlook.issuedLastDay,
  };
}

const noRenewal: Shown = {
  authority: null,
  renewsAt: null,
  renewsBecause: null,
  failures: null,
  lastAttemptAt: null,
  lastSuccessAt: null,
  lastFailure: null,
  nextTryAt: null,
  issuedLastDay: null,
};

const labels: Record<string, string> = {
  names: 'for',
  issuer: 'issued by',
  serialNumber: 'serial number',
  fingerprint: 'SHA-256',
  keyType: 'key',
  validFrom: 'good from',
  validTo: 'good until',
  daysLeft: 'days left',
  chainLength: 'certificates sent',
  authority: 'authority',
  renewsAt: 'renews at',
  renewsBecause: 'renews by',
  failures: 'failures in a row',
  lastAttemptAt: 'last try',
  lastSuccessAt: 'last success',
  lastFailure: 'last failure',
  nextTryAt: 'next try',
  issuedLastDay: 'issued in 24 hours',
};

/** Aligned; what is not known is left out. */
function linesOf(shown: Shown, io: Io): string {
  const paint = painter(io, io.stdout);
  const width = Math.max(...Object.values(labels).map((label) => label.length));
  return Object.entries(labels)
    .flatMap(([field, label]) => {
      const value = shown[field] ?? null;
      if (value === null) return [];
      const text = printable(Array.isArray(value) ? value.join(', ') : String(value));
      return [`${paint('dim', label.padEnd(width))}  ${text}\n`];
    })
    .join('');
}
