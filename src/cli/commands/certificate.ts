/** `earshot certificate`: shows and renews the certificate of the endpoint. */

import { loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { wholeDays } from '../../domain/dates.ts';
import { printable } from '../../domain/text.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { lastFailureText, renewalStatus, shareLeft } from '../../tls/acme-state.ts';
import { loadCertificateFiles } from '../../tls/certificate.ts';
import { defineCommand, defineGroup } from '../command.ts';
import { jsonOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { painter, printJson, writeOut } from '../output.ts';

const showCommand = defineCommand('show', {
  description: 'Show the certificate, the next renewal and the last failure.',
  flags: (command) => command.addOption(jsonOption()),
  help: `Fields of --json: source, names, issuer, serialNumber, validFrom, validTo, daysLeft, shareLeft,
authority, renewsAt, renewsBecause, failures, lastAttemptAt, lastSuccessAt, nextAttemptAt,
lastFailure, resumeLink. Unknown values are null.
  source         acme or files
  shareLeft      share of the lifetime that is left, in percent
  renewsBecause  lifetime (most of it has passed) or authority (it advised renewsAt)
  failures       number of failed attempts since the last success
  resumeLink     page of the authority where a person can resume a paused account

Exit codes: 0 done, 1 no certificate yet or failed, 2 wrong usage or configuration.

Examples:
  $ earshot certificate show                          show the certificate
  $ earshot certificate show --json                   print JSON
  $ earshot certificate show --json | jq .daysLeft    print the days until the expiry`,
  run: showCertificate,
});

const renewCommand = defineCommand('renew', {
  description: 'Renew the certificate if its renewal date has passed.',
  flags: (command) => command.option('--force', 'force the action (renew before the renewal date)'),
  help: `The command does not wait after a failed attempt. A running receiver loads the new certificate
within ten seconds. Each renewal counts towards the limits of the authority.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot certificate renew             order a certificate if the renewal date has passed
  $ earshot certificate renew --force     order a certificate before the renewal date
  $ earshot certificate show              show the result`,
  run: renewCertificate,
});

export const certificateCommand = defineGroup('certificate', {
  description: 'Show or renew the certificate of the endpoint.',
  help: `If EARSHOT_TLS is acme, then the receiver orders and renews the certificate automatically.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot certificate                show the certificate
  $ earshot certificate renew          renew the certificate
  $ earshot certificate show --json    print JSON`,
  usual: showCommand,
  commands: [renewCommand],
});

/** Time for another program to finish its order of the same certificate. */
const lockWaitMs = 300_000;

/** Rejects with the errors of `renew`. */
async function renewCertificate(io: Io, { force }: { force?: true }): Promise<void> {
  const config = loadConfig(io, ['acme', 'dataDir', 'listen', 'sharedLog']);
  const { acme: settings, dataDir, listen, sharedLog } = config;
  // The ACME client is large, and `--help` does not need it.
  const { renew } = await import('../../tls/acme.ts');
  const { openConfiguredLog } = await import('../open-store.ts');
  const { createFileSync, sharedRenewal } = await import('../shared-files.ts');
  const log = sharedLog && (await openConfiguredLog({ sharedLog }, io, io.newId()));
  const sync = log && createFileSync(dataDir, log.files);
  const acquireLock = log?.acquireLease ?? createAcquireLock(dataDir);
  const shared = sharedRenewal(acquireLock, sync, io.signal);
  const context = { ...io, ...shared, settings, dataDir, listen, lockWaitMs };
  const renewed = await renew(context, force ? 'anyway' : 'asked').finally(async () => {
    await sync?.();
    await log?.close();
  });
  const { certificate, due } = renewalStatus(dataDir, settings);
  const day = (ms = 0) => new Date(ms).toISOString().slice(0, 10);
  const until = `valid until ${day(certificate?.notAfter.getTime())}`;
  io.stderr.write(
    renewed
      ? `New certificate, ${until}. A running receiver loads it within ten seconds.\n`
      : `The certificate is ${until}; automatic renewal on ${day((due?.atUs ?? 0) / 1000)}. To renew it now, add --force.\n`,
  );
}

/** Shows the known fields; then rejects with `not_found` if there is no certificate. */
async function showCertificate(io: Io, { json }: { json?: true }): Promise<void> {
  const { servedTls: tls, dataDir } = loadConfig(io, ['servedTls', 'dataDir']);
  const status = tls.kind === 'acme' ? renewalStatus(dataDir, tls) : null;
  const { state = null, due = null, saved = null } = status ?? {};
  const certificate = tls.kind === 'files' ? await loadCertificateFiles(tls) : saved;
  const time = (atUs: number | null = null) => atUs && new Date(atUs / 1000).toISOString();
  const endUs = certificate && certificate.notAfter.getTime() * 1000;
  const shown: Record<string, unknown> = {
    source: tls.kind,
    names: certificate?.names ?? null,
    issuer: certificate?.issuer ?? null,
    serialNumber: certificate?.serialNumber ?? null,
    validFrom: certificate?.notBefore.toISOString() ?? null,
    validTo: time(endUs),
    daysLeft: endUs && wholeDays(endUs - io.nowUs()),
    shareLeft: certificate && Math.floor(shareLeft(certificate, io.nowUs()) * 100),
    authority: saved?.directoryUrl ?? state?.directoryUrl ?? null,
    renewsAt: time(due?.atUs),
    renewsBecause: due?.because ?? null,
    failures: state?.failures ?? null,
    lastAttemptAt: time(state?.lastAttemptAtUs),
    lastSuccessAt: time(state?.lastSuccessAtUs),
    nextAttemptAt: time(state?.nextAttemptAtUs),
    lastFailure: state && lastFailureText(state),
    resumeLink: state?.lastFailure?.link ?? null,
  };
  if (json) await printJson(io.stdout, shown);
  else await writeOut(io.stdout, linesOf(shown, io));
  if (certificate === null) {
    throw new AppError('not_found', 'There is no certificate yet.', {
      advice:
        'A running receiver orders a certificate automatically. To order one now: `earshot certificate renew`.',
    });
  }
}

/** Aligned lines of the known fields. */
function linesOf(shown: Record<string, unknown>, io: Io): string {
  const paint = painter(io, io.stdout);
  const known = Object.entries(shown).filter(([, value]) => value !== null);
  const width = Math.max(...known.map(([field]) => labelOf(field).length));
  return known
    .map(([field, value]) => {
      const text = printable(Array.isArray(value) ? value.join(', ') : String(value));
      return `${paint('dim', labelOf(field).padEnd(width))}  ${text}\n`;
    })
    .join('');
}

/** `validFrom` is `valid from`. */
function labelOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
