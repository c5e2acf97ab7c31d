/** `earshot certificate`: what the endpoint's certificate is, and getting a new one. */
import { Command, Option } from 'commander';
import type { Io } from '../io.ts';

export function certificateCommand(io: Io): Command {
  return new Command('certificate')
    .description('Show the certificate of the endpoint, renew it, or try whether one can be had.')
    .addHelpText(
      'after',
      `
With EARSHOT_TLS=acme the receiver gets and renews its certificate by itself; these commands are for
looking, and for those who do not want to wait.

Examples:
  $ earshot certificate
  $ earshot certificate test
  $ earshot certificate renew`,
    )
    .addCommand(showCommand(io), { isDefault: true })
    .addCommand(renewCommand(io))
    .addCommand(testCommand(io));
}

function showCommand(io: Io): Command {
  return new Command('show')
    .description(
      'Show names, issuer and dates, when it is renewed, and what the last tries came to.',
    )
    .option('--json', 'as one JSON object')
    .addOption(
      new Option('--pem', 'the chain itself, PEM, without its key').conflicts(['json', 'output']),
    )
    .addHelpText(
      'after',
      `
Fields of --json: source (acme or files), names, issuer, serialNumber, fingerprint (SHA-256),
keyType, validFrom, validTo, daysLeft, chainLength (certificates sent), authority, renewsAt and
renewsBecause (share: by its lifetime; authority: as the authority advises; expiry: later would be
too late), failures (since the last success), lastAttemptAt, lastSuccessAt, lastFailure, nextTryAt,
issuedLastDay. Absent values are null. Exit code 1 when there is no certificate yet.

Examples:
  $ earshot certificate show
  $ earshot certificate show --json | jq .daysLeft
  $ earshot certificate show --pem | openssl x509 -noout -text`,
    )
    .action(async (flags: { json?: true; pem?: true }) => {
      const { showCertificate } = await import('../certificate/show-certificate.ts');
      await showCertificate(io, flags);
    });
}

function renewCommand(io: Io): Command {
  return new Command('renew')
    .description('Get a certificate now, if one is due: after failures, without waiting longer.')
    .option('--force', 'also when the one that is there is still good')
    .addHelpText(
      'after',
      `
Works beside a running receiver, which answers the authority and takes the new certificate up within
ten seconds; without one, the command answers itself. No more than five certificates are ordered
within 24 hours.

Examples:
  $ earshot certificate renew
  $ earshot certificate renew --force`,
    )
    .action(async (flags: { force?: true }) => {
      const { renewCertificate } = await import('../certificate/renew-certificate.ts');
      await renewCertificate(io, flags);
    });
}

function testCommand(io: Io): Command {
  return new Command('test')
    .description('Try whether a certificate can be had, without using one up.')
    .addHelpText(
      'after',
      `
Shows where the authority's terms stand. Then the whole order is tried at the authority's staging
directory, where one is known; elsewhere the name is proved to the authority itself, and no
certificate is made.

Example:
  $ earshot certificate test`,
    )
    .action(async () => {
      const { testCertificate } = await import('../certificate/test-certificate.ts');
      await testCertificate(io);
    });
}
