/** `earshot certificate`: shows and renews the certificate of the endpoint. */

import { defineCommand, defineGroup } from '../../core/cli/command.ts';
import { jsonOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { isoTime, printJson } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import { loadConfig } from '../../core/config/config.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { wholeDays } from '../../core/terms/dates.ts';
import { situationAt } from '../../core/terms/evaluation.ts';
import * as report from '../../core/terms/report.ts';
import { evaluateCertificate, readCertificateStatus } from './status.ts';

const showCommand = defineCommand('show', {
  description: 'Show the certificate, the next renewal and the last failure.',
  flags: (command) => command.addOption(jsonOption()),
  help: `Fields of --json: level, text, evidence, nextStep, source, names, issuer, validFrom, validTo,
daysLeft, authority, renewsAt, failures, lastAttemptAt, nextAttemptAt, lastFailure. Unknown values
are null.
  source      acme or files
  failures    number of failed attempts since the last success

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
  const config = loadConfig(io, ['acme', 'data', 'listen']);
  const { acme: settings, dataDir, listen } = config;
  // The ACME client is large, and `--help` does not need it.
  const [{ renew }, { sharedRenewal }, { openSharedParts }] = await Promise.all([
    import('./acme.ts'),
    import('./job.ts'),
    import('../../store/store.ts'),
  ]);
  const { acquireLock, syncFiles, close } = await openSharedParts(config, io);
  const steps = sharedRenewal(acquireLock, syncFiles, io.signal);
  const context = { ...io, ...steps, settings, dataDir, listen };
  const renewed = await renew(context, force ? 'anyway' : 'asked').finally(async () => {
    await syncFiles?.();
    await close();
  });
  io.stderr.write(
    renewed
      ? 'New certificate. A running receiver loads it within ten seconds.\n'
      : 'No renewal is due: see `earshot certificate show`. To renew now, add --force.\n',
  );
}

/** Shows the evaluation and the facts; then rejects with `unavailable` if there is no certificate. */
async function showCertificate(io: Io, { json }: { json?: true }): Promise<void> {
  const { servedTls: tls, dataDir } = loadConfig(io, ['servedTls', 'dataDir']);
  const { certificate, state, renewsAtUs, status } = readCertificateStatus(tls, dataDir);
  const { notAfterUs, lastAttemptAtUs, lastFailure } = status;
  const nowUs = io.nowUs();
  const evaluation = evaluateCertificate(status, situationAt(nowUs));
  const { directoryUrl: authority = null, failures = null, nextAttemptAtUs = null } = state ?? {};
  const { names = null, issuer = null, notBeforeUs = null } = certificate ?? {};
  if (json) {
    await printJson(io.stdout, {
      ...evaluation,
      ...{ source: tls.kind, names, issuer },
      validFrom: isoTime(notBeforeUs),
      validTo: isoTime(notAfterUs),
      daysLeft: notAfterUs && wholeDays(notAfterUs - nowUs),
      ...{ authority, renewsAt: isoTime(renewsAtUs), failures },
      lastAttemptAt: isoTime(lastAttemptAtUs),
      nextAttemptAt: isoTime(nextAttemptAtUs),
      lastFailure,
    });
  } else {
    const shown = report.facts(
      ['source', tls.kind],
      ['names', names?.join(', ') ?? null],
      ['issuer', issuer],
      ['valid from (UTC)', report.time(notBeforeUs)],
      ['valid to (UTC)', report.time(notAfterUs)],
      ['authority', authority],
      ['renewal (UTC)', report.time(renewsAtUs)],
      ['failures', failures],
      ['last attempt (UTC)', report.time(lastAttemptAtUs)],
      ['next attempt (UTC)', report.time(nextAttemptAtUs)],
      ['last failure', lastFailure],
    );
    const section = { kind: 'section', title: 'certificate', evaluation, blocks: [shown] } as const;
    await printReport(io, { title: 'Certificate', blocks: [section] });
  }
  if (certificate === null) throw new AppError('unavailable', 'There is no certificate yet.');
}
