/** `earshot certificate`: shows, renews and tests the certificate of the endpoint. */

import { Option } from 'commander';
import { type Config, loadConfig } from '../../config/config.ts';
import type { AcquireLock } from '../../domain/account.ts';
import { AppError } from '../../domain/app-error.ts';
import { wholeDays } from '../../domain/dates.ts';
import { printable } from '../../domain/text.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import type { AcmeContext } from '../../tls/acme/order.ts';
import type { Renewal } from '../../tls/acme/renew.ts';
import { lastFailureText, openAcmeFolder } from '../../tls/acme/state.ts';
import { certificateFacts, loadCertificateFiles } from '../../tls/certificate.ts';
import { defineCommand, defineGroup } from '../command.ts';
import { jsonOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { painter, printJson, writeOut } from '../output.ts';
import type { sharedRenewal } from '../shared-files.ts';

const showCommand = defineCommand('show', {
  description:
    'Show the certificate, the next renewal, and the result of the last renewal attempts.',
  flags: (command) =>
    command
      .addOption(jsonOption())
      .addOption(
        new Option('--pem', 'print only the certificate chain as PEM, without the key').conflicts([
          'json',
          'output',
        ]),
      ),
  help: `Fields of --json: source, names, issuer, serialNumber, fingerprint, keyType, validFrom, validTo,
daysLeft, chainLength, authority, renewsAt, renewsBecause, failures, lastAttemptAt, lastSuccessAt,
lastFailure, nextTryAt, issuedLastDay. Unknown values are null.
  source         acme or files
  renewsBecause  share: most of the lifetime has passed; authority: the authority advised renewsAt;
                 expiry: the certificate expires soon
  failures       number of failed attempts since the last success
  issuedLastDay  number of certificates that were issued in the last 24 hours

Exit codes: 0 done, 1 no certificate yet or failed, 2 wrong usage or configuration.

Examples:
  $ earshot certificate show                                        show the certificate
  $ earshot certificate show --json | jq .daysLeft                  print the days until the expiry
  $ earshot certificate show --pem | openssl x509 -noout -text      print the whole certificate`,
  run: showCertificate,
});

const renewCommand = defineCommand('renew', {
  description: 'Renew the certificate if its renewal date has passed.',
  flags: (command) => command.option('--force', 'force the action (renew before the renewal date)'),
  help: `The command ignores the delay after failed attempts. If the receiver is running, then the receiver
answers the challenge and loads the new certificate within ten seconds. Otherwise, the command
answers the challenge. earshot orders at most five certificates in 24 hours.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot certificate renew             order a certificate if the renewal date has passed
  $ earshot certificate renew --force     order a certificate before the renewal date
  $ earshot certificate show              show the certificate and the last attempts`,
  run: renewCertificate,
});

const testCommand = defineCommand('test', {
  description: 'Test if a certificate can be issued, without issuing a trusted certificate.',
  help: `The command prints the URL of the terms of service of the authority. Then the command tests an
order:
  - If the authority has a staging directory, then the command runs a complete order there.
  - Otherwise, the command only completes the challenge, and no certificate is issued.
The test does not count towards the certificate limits of the authority.

Exit codes: 0 passed, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot certificate test                                  test the configured challenge
  $ EARSHOT_ACME_AGREE=yes earshot certificate test           accept the terms, then test
  $ earshot certificate test && earshot certificate renew     test, then order`,
  run: testCertificate,
});

export const certificateCommand = defineGroup('certificate', {
  description: 'Show, renew or test the certificate of the endpoint.',
  help: `If EARSHOT_TLS is acme, then the receiver orders and renews the certificate automatically.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot certificate            show the certificate
  $ earshot certificate test       test if a certificate can be issued
  $ earshot certificate renew      renew the certificate`,
  usual: showCommand,
  commands: [renewCommand, testCommand],
});

/** Loads the ACME client on demand: it is large, and `--help` does not need it. */
const loadAcme = async () => ({
  ...(await import('../../tls/acme/authority.ts')),
  ...(await import('../../tls/acme/challenge.ts')),
  ...(await import('../../tls/acme/order.ts')),
  ...(await import('../../tls/acme/problem.ts')),
  ...(await import('../../tls/acme/renew.ts')),
  ...(await import('../../tls/acme/renewal-time.ts')),
});
type Acme = Awaited<ReturnType<typeof loadAcme>>;

/** Time for another program to finish its order of the same certificate. */
const lockWaitMs = 300_000;

/** Runs `work` with an ACME context, and closes the listener afterwards. */
async function withAcmeContext<Value>(
  { acme, dataDir, listen, sharedLog }: Pick<Config, 'acme' | 'dataDir' | 'listen' | 'sharedLog'>,
  io: Io,
  work: (context: AcmeContext, acquireLock: AcquireLock, parts: Acme) => Promise<Value>,
): Promise<Value> {
  const parts = await loadAcme();
  const shared = await openShared({ dataDir, sharedLog }, io);
  const listener =
    acme.challenge === 'http-01'
      ? parts.createChallengeListener(acme.httpListen, io)
      : parts.createHandshakeListener(listen);
  const print = (line: string) => void io.stderr.write(`${line}\n`);
  const { nowUs, random, signal } = io;
  const context = parts.openAcmeContext({
    settings: acme,
    dataDir,
    openListener: (challenges) => listener.open(challenges),
    log: {
      error: (fields, message) => print(`${message}: ${'reason' in fields && fields.reason}`),
    },
    report: (step) => print(`… ${step}`),
    published: shared.published,
    nowUs,
    random,
    signal,
  });
  try {
    return await work(context, shared.acquireLock, parts);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new AppError('cancelled', 'Interrupted. The next attempt continues the order.');
  } finally {
    await listener.close();
    await shared.close();
  }
}

/** Returns the lock for orders: of the data directory or, with a shared log, of all receivers. */
async function openShared(
  { dataDir, sharedLog }: Pick<Config, 'dataDir' | 'sharedLog'>,
  io: Io,
): Promise<ReturnType<typeof sharedRenewal> & { close(): Promise<void> }> {
  const nothing = async () => undefined;
  if (sharedLog === null) {
    return { acquireLock: createAcquireLock(dataDir), published: nothing, close: nothing };
  }
  const [{ openConfiguredLog }, files] = await Promise.all([
    import('../open-store.ts'),
    import('../shared-files.ts'),
  ]);
  const log = await openConfiguredLog({ sharedLog }, io, io.newId());
  const sync = files.createFileSync(dataDir, log.files);
  const renewal = files.sharedRenewal(log.acquireLease, sync, io.signal);
  return {
    ...renewal,
    close: async () => {
      await sync();
      await log.close();
    },
  };
}

/** Rejects with the errors of `renew`, and with `cancelled` on interruption. */
async function renewCertificate(io: Io, { force }: { force?: true }): Promise<void> {
  const config = loadConfig(io, ['acme', 'dataDir', 'listen', 'sharedLog']);
  const renewal = await withAcmeContext(config, io, (context, acquireLock, { renew }) =>
    renew(context, {
      when: force === true ? 'anyway' : 'asked',
      acquireLock,
      lockWaitMs,
      onIssued: () => undefined,
    }),
  );
  io.stderr.write(`${sentenceOf(renewal)}\n`);
}

function sentenceOf(renewal: Renewal): string {
  const day = (date: Date) => date.toISOString().slice(0, 10);
  if (renewal.outcome === 'waiting') {
    return `Another program has just attempted a renewal. The next attempt is possible after ${new Date(renewal.untilUs / 1000).toISOString()}.`;
  }
  const { notAfter } = renewal.certificate;
  if (renewal.outcome === 'renewed') {
    return `New certificate, valid until ${day(notAfter)}. A running receiver loads it within ten seconds.`;
  }
  const due = new Date(renewal.due.atUs / 1000);
  return `The certificate is valid until ${day(notAfter)}; automatic renewal on ${day(due)}. To renew it now, add --force.`;
}

/** Every field is always present; times are ISO 8601 UTC. */
type Shown = Record<string, string | number | readonly string[] | null>;

/** Shows the known fields; then rejects with `not_found` if there is no certificate. */
async function showCertificate(io: Io, { json, pem }: { json?: true; pem?: true }): Promise<void> {
  const { servedTls: tls, dataDir } = loadConfig(io, ['servedTls', 'dataDir']);
  const folder = openAcmeFolder(dataDir);
  const certificate =
    tls.kind === 'files' ? await loadCertificateFiles(tls) : await folder.readCertificate();
  const shown: Shown = {
    source: tls.kind,
    ...unknown,
    ...(certificate === null ? {} : factsOf(certificate.cert, io.nowUs())),
    ...(tls.kind === 'acme' ? await renewalOf(tls, dataDir, io) : {}),
  };
  if (pem) await writeOut(io.stdout, certificate?.cert ?? '');
  else if (json) await printJson(io.stdout, shown);
  else if (certificate !== null) await writeOut(io.stdout, linesOf(shown, io));
  if (certificate !== null && tls.kind === 'acme' && shown.renewsAt === null) {
    io.stderr.write(
      `The certificate does not match the settings (host ${tls.host}, authority ${new URL(tls.directoryUrl).host}). A running receiver orders a new certificate.\n`,
    );
  }
  if (certificate !== null) return;
  const { lastFailure = null } = shown;
  throw new AppError('not_found', 'There is no certificate yet.', {
    advice:
      'A running receiver orders a certificate automatically. To order one now: `earshot certificate renew`.',
    details: lastFailure === null ? [] : [`The last attempt failed: ${lastFailure}`],
  });
}

function factsOf(chain: string, nowUs: number): Shown {
  const { validFrom, validTo, ...facts } = certificateFacts(chain);
  return {
    ...facts,
    validFrom: validFrom.toISOString(),
    validTo: validTo.toISOString(),
    daysLeft: wholeDays(validTo.getTime() * 1_000 - nowUs),
  };
}

async function renewalOf(
  settings: { directoryUrl: string; host: string },
  dataDir: string,
  { nowUs }: Io,
): Promise<Shown> {
  const { renewalOutlook } = await import('../../tls/acme/renewal-time.ts');
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

/** Fields in output order, with their labels. */
const labels: Record<string, string> = {
  names: 'for',
  issuer: 'issued by',
  serialNumber: 'serial number',
  fingerprint: 'SHA-256',
  keyType: 'key',
  validFrom: 'valid from',
  validTo: 'valid until',
  daysLeft: 'days left',
  chainLength: 'certificates sent',
  authority: 'authority',
  renewsAt: 'renewal at',
  renewsBecause: 'renewal reason',
  failures: 'failures in a row',
  lastAttemptAt: 'last attempt',
  lastSuccessAt: 'last success',
  lastFailure: 'last failure',
  nextTryAt: 'next attempt',
  issuedLastDay: 'issued in 24 hours',
};

const unknown: Shown = Object.fromEntries(Object.keys(labels).map((field) => [field, null]));

/** Aligned lines of the known fields. */
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

/** Rejects with an explained failure, and with `configuration` until the user agrees to the terms. */
async function testCertificate(io: Io): Promise<void> {
  const sections = ['acmeTrial', 'acmeAgreed', 'dataDir', 'listen', 'sharedLog'] as const;
  const { acmeTrial: acme, acmeAgreed, ...place } = loadConfig(io, sections);
  const { directoryUrl, host, challenge } = acme;
  const shown = await withAcmeContext(
    { acme, ...place },
    io,
    async (context, acquireLock, parts) => {
      const explained = (error: unknown) => {
        throw parts.explainFailure(error, acme);
      };
      const terms = await readTerms(context, parts).catch(explained);
      io.stderr.write(`Terms of service: ${terms ?? 'none'}\n`);
      if (!acmeAgreed) {
        throw new AppError('configuration', 'The test needs your agreement to the terms.', {
          advice: 'Read the terms, set EARSHOT_ACME_AGREE=yes, and run the command again.',
        });
      }
      const release = await parts.acquireCertificateLock(context, { acquireLock, lockWaitMs });
      return parts.testOrder(context).catch(explained).finally(release);
    },
  );
  const authority = new URL(directoryUrl).host;
  io.stdout.write(
    shown === 'issued'
      ? `Passed: the staging directory of ${authority} issued a certificate for ${host} with ${challenge}.\n`
      : `Passed: ${authority} validated ${host} with ${challenge}. No certificate was issued.\n`,
  );
}

async function readTerms(context: AcmeContext, { openAuthority }: Acme): Promise<string | null> {
  const { meta } = await (await openAuthority(context)).readDirectory();
  return meta?.termsOfService === undefined ? null : printable(meta.termsOfService);
}
