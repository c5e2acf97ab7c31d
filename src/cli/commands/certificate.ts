/** `earshot certificate`: shows and renews the certificate of the endpoint. */

import { loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { wholeDays } from '../../domain/dates.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { defineCommand, defineGroup } from '../command.ts';
import { jsonOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { type Column, isoTime, printJson, printTable } from '../output.ts';
import { readCertificateStatus } from '../start/watch-probes.ts';

const showCommand = defineCommand('show', {
  description: 'Show the certificate, the next renewal and the last failure.',
  flags: (command) => command.addOption(jsonOption()),
  help: `Fields of --json: source, names, issuer, validFrom, validTo, daysLeft, authority,
renewsAt, failures, lastAttemptAt, nextAttemptAt, lastFailure, resumeLink. Unknown values are null.
  source      acme or files
  failures    number of failed attempts since the last success
  resumeLink  page of the authority where a person can resume a paused account

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

Examples:
  $ earshot certificate renew             order a certificate if the renewal date has passed
  $ earshot certificate renew --force     order a certificate before the renewal date
  $ earshot certificate show              show the result`,
  run: renewCertificate,
});

export const certificateCommand = defineGroup('certificate', {
  description: 'Show or renew the certificate of the endpoint.',
  help: `If EARSHOT_TLS is acme, then the receiver orders and renews the certificate automatically.

Examples:
  $ earshot certificate                show the certificate
  $ earshot certificate renew          renew the certificate
  $ earshot certificate show --json    print JSON`,
  usual: showCommand,
  commands: [renewCommand],
});

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
  const context = { ...io, ...shared, settings, dataDir, listen };
  const renewed = await renew(context, force ? 'anyway' : 'asked').finally(async () => {
    await sync?.();
    await log?.close();
  });
  io.stderr.write(
    renewed
      ? 'New certificate. A running receiver loads it within ten seconds.\n'
      : 'No renewal is due: see `earshot certificate show`. To renew now, add --force.\n',
  );
}

/** Shows the fields; then rejects with `not_found` if there is no certificate. */
async function showCertificate(io: Io, { json }: { json?: true }): Promise<void> {
  const { servedTls: tls, dataDir } = loadConfig(io, ['servedTls', 'dataDir']);
  const { certificate, state, renewsAtUs, status } = readCertificateStatus(tls, dataDir);
  const { notAfterUs, lastAttemptAtUs, lastFailure } = status;
  const shown = {
    source: tls.kind,
    names: certificate?.names ?? null,
    issuer: certificate?.issuer ?? null,
    validFrom: isoTime(certificate?.notBeforeUs ?? null),
    validTo: isoTime(notAfterUs),
    daysLeft: notAfterUs && wholeDays(notAfterUs - io.nowUs()),
    authority: state?.directoryUrl ?? null,
    renewsAt: isoTime(renewsAtUs),
    failures: state?.failures ?? null,
    lastAttemptAt: isoTime(lastAttemptAtUs),
    nextAttemptAt: isoTime(state?.nextAttemptAtUs ?? null),
    lastFailure,
    resumeLink: state?.lastFailure?.link ?? null,
  };
  const known = Object.entries(shown).filter(([, value]) => value !== null);
  if (json) await printJson(io.stdout, shown);
  else await printTable(io.stdout, columns, known);
  if (certificate === null) {
    const advice = 'A running receiver orders it. To order it now: `earshot certificate renew`.';
    throw new AppError('not_found', 'There is no certificate yet.', { advice });
  }
}

const columns: readonly Column<[field: string, value: unknown]>[] = [
  { title: 'field', value: ([field]) => field },
  // The last column, never shortened, so that a link can be copied.
  { title: 'value', value: ([, value]) => String(value ?? '-'), whole: true },
];
