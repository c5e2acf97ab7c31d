/** `earshot certificate`: what the endpoint's certificate is, and getting a new one. */

import { Option } from 'commander';
import { type Config, loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { wholeDays } from '../../domain/dates.ts';
import { printable } from '../../domain/text.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import type { AcmeContext } from '../../tls/acme/order.ts';
import type { Renewal } from '../../tls/acme/renew.ts';
import { lastFailureText, openAcmeFolder } from '../../tls/acme/state.ts';
import { certificateFacts, loadCertificateFiles } from '../../tls/certificate.ts';
import { defineCommand, defineGroup } from '../command.ts';
import type { Io } from '../io.ts';
import { painter, printJson, writeOut } from '../output.ts';

const showCommand = defineCommand('show', {
  description: 'Show names, issuer and dates, when it is renewed, and what the last tries came to.',
  flags: (command) =>
    command
      .option('--json', 'as one JSON object')
      .addOption(
        new Option('--pem', 'the chain itself, PEM, without its key').conflicts(['json', 'output']),
      ),
  help: `Fields of --json: source (acme or files), names, issuer, serialNumber, fingerprint (SHA-256),
keyType, validFrom, validTo, daysLeft, chainLength (certificates sent), authority, renewsAt and
renewsBecause (share: by its lifetime; authority: as the authority advises; expiry: later would be
too late), failures (since the last success), lastAttemptAt, lastSuccessAt, lastFailure, nextTryAt,
issuedLastDay. Absent values are null. Exit code 1 when there is no certificate yet.

Examples:
  $ earshot certificate show
  $ earshot certificate show --json | jq .daysLeft
  $ earshot certificate show --pem | openssl x509 -noout -text`,
  run: showCertificate,
});

const renewCommand = defineCommand('renew', {
  description: 'Get a certificate now, if one is due: after failures, without waiting longer.',
  flags: (command) => command.option('--force', 'also when the one that is there is still good'),
  help: `Works beside a running receiver, which answers the authority and takes the new certificate up within
ten seconds; without one, the command answers itself. No more than five certificates are ordered
within 24 hours.

Examples:
  $ earshot certificate renew
  $ earshot certificate renew --force`,
  run: renewCertificate,
});

const testCommand = defineCommand('test', {
  description: 'Try whether a certificate can be had, without using one up.',
  help: `Shows where the authority's terms stand. Then the whole order is tried at the authority's staging
directory, where one is known; elsewhere the name is proved to the authority itself, and no
certificate is made.

Example:
  $ earshot certificate test`,
  run: testCertificate,
});

export const certificateCommand = defineGroup('certificate', {
  description: 'Show the certificate of the endpoint, renew it, or try whether one can be had.',
  help: `With EARSHOT_TLS=acme the receiver gets and renews its certificate by itself; these commands are for
looking, and for those who do not want to wait.

Examples:
  $ earshot certificate
  $ earshot certificate test
  $ earshot certificate renew`,
  usual: showCommand,
  commands: [renewCommand, testCommand],
});

/** The ACME client and its formats are large: they are loaded when they are needed, not for `--help`. */
const loadAcme = async () => ({
  ...(await import('../../tls/acme/authority.ts')),
  ...(await import('../../tls/acme/challenge.ts')),
  ...(await import('../../tls/acme/order.ts')),
  ...(await import('../../tls/acme/problem.ts')),
  ...(await import('../../tls/acme/renew.ts')),
  ...(await import('../../tls/acme/renewal-time.ts')),
});
type Acme = Awaited<ReturnType<typeof loadAcme>>;

/** For another program that is getting the same certificate at this moment. */
const lockWaitMs = 300_000;

/** Runs `work`, and closes what it has opened. */
async function withAcmeContext<Value>(
  { acme, dataDir, listen }: Pick<Config, 'acme' | 'dataDir' | 'listen'>,
  io: Io,
  work: (
    context: AcmeContext,
    acquireLock: ReturnType<typeof createAcquireLock>,
    parts: Acme,
  ) => Promise<Value>,
): Promise<Value> {
  const parts = await loadAcme();
  const listener =
    acme.challenge === 'http-01'
      ? parts.createChallengeListener(acme.httpListen, io)
      : parts.createHandshakeListener(listen);
  const tell = (line: string) => void io.stderr.write(`${line}\n`);
  const { nowUs, random, signal } = io;
  const context = parts.openAcmeContext({
    settings: acme,
    dataDir,
    openListener: (challenges) => listener.open(challenges),
    log: { error: (fields, message) => tell(`${message}: ${'reason' in fields && fields.reason}`) },
    report: (step) => tell(`… ${step}`),
    nowUs,
    random,
    signal,
  });
  try {
    return await work(context, createAcquireLock(dataDir), parts);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new AppError('cancelled', 'Ended. The next try takes up the order where it stands.');
  } finally {
    await listener.close();
  }
}

/** Rejects as `renew` does, and with `cancelled` when the user ends it. */
async function renewCertificate(io: Io, { force }: { force?: true }): Promise<void> {
  const config = loadConfig(io, ['acme', 'dataDir', 'listen']);
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
    return `Another program has just tried. The next try is after ${new Date(renewal.untilUs / 1000).toISOString()}.`;
  }
  const { notAfter } = renewal.certificate;
  if (renewal.outcome === 'renewed') {
    return `There is a new certificate, good until ${day(notAfter)}. A receiver that runs takes it up within ten seconds.`;
  }
  const due = new Date(renewal.due.atUs / 1000);
  return `The certificate is good until ${day(notAfter)}, and is renewed by itself on ${day(due)}. To get another one all the same: --force.`;
}

/** Every field is always there; times are ISO 8601 UTC. */
type Shown = Record<string, string | number | readonly string[] | null>;

/** Rejects with `not_found` when there is no certificate, after having shown what is known. */
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
      `This is not the certificate that the settings ask for: for ${tls.host}, of ${new URL(tls.directoryUrl).host}. A running receiver gets that one.\n`,
    );
  }
  if (certificate !== null) return;
  const { lastFailure = null } = shown;
  throw new AppError('not_found', 'There is no certificate yet.', {
    advice: 'A running receiver gets one by itself; `earshot certificate renew` does it now.',
    details: lastFailure === null ? [] : [`The last try failed: ${lastFailure}`],
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

/** The fields in their order, and what people read. */
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

const unknown: Shown = Object.fromEntries(Object.keys(labels).map((field) => [field, null]));

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

/** Rejects with what explains the failure; `configuration` before the user agrees to the terms. */
async function testCertificate(io: Io): Promise<void> {
  const sections = ['acmeTrial', 'acmeAgreed', 'dataDir', 'listen'] as const;
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
      io.stderr.write(`Terms of service: ${terms ?? 'the authority names none'}\n`);
      if (!acmeAgreed) {
        throw new AppError('configuration', 'Nothing was tried yet.', {
          advice:
            'Read the terms; when you agree to them, set EARSHOT_ACME_AGREE=yes and run this again.',
        });
      }
      const release = await parts.takeTurn(context, { acquireLock, lockWaitMs });
      return parts.rehearse(context).catch(explained).finally(release);
    },
  );
  const authority = new URL(directoryUrl).host;
  io.stdout.write(
    shown === 'issued'
      ? `A whole order for ${host} by ${challenge} succeeded at the staging directory of ${authority}. The real one should, too.\n`
      : `${authority} has seen by ${challenge} that ${host} is ours. No certificate was made.\n`,
  );
}

async function readTerms(context: AcmeContext, { visitAuthority }: Acme): Promise<string | null> {
  const { meta } = await (await visitAuthority(context)).readDirectory();
  return meta?.termsOfService === undefined ? null : printable(meta.termsOfService);
}
