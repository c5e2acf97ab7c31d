/** `earshot credentials`: creates and rotates the endpoint credentials. */

import { createCredentials, newCredentials } from '../../admin/open-account.ts';
import { accountSections, loadAccountConfig } from '../../admin/settings.ts';
import { defineCommand, defineGroup, type Parts } from '../../core/cli/command.ts';
import { positiveNumber } from '../../core/cli/flags.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { loadConfig } from '../../core/config/config.ts';
import {
  credentialsFileName,
  readCredentialsFile,
  writeCredentialsFile,
} from '../../core/config/endpoint-credentials.ts';
import { AppError } from '../../core/terms/app-error.ts';

const waitSecondsDefault = 600;

const createCommand = defineCommand('create', {
  description: 'Create endpoint credentials and store them in the data directory.',
  help: `Only the owner of the data directory can read the credentials. The receiver loads the credentials,
and \`earshot register\` sends the credentials to the catalogue. If EARSHOT_ENDPOINT_USERNAME and
EARSHOT_ENDPOINT_PASSWORD are set, then the command stores their values, otherwise random credentials.

Examples:
  $ earshot credentials create                             create credentials
  $ earshot credentials create --data-dir /srv/earshot     store them in another data directory
  $ EARSHOT_ENDPOINT_USERNAME=catalogue EARSHOT_ENDPOINT_PASSWORD=… earshot credentials create`,
  run: async (io: Io) => {
    const config = loadConfig(io, accountSections);
    const path = `${config.dataDir}/${credentialsFileName}`;
    if (!(await createCredentials(config, io))) {
      throw new AppError('conflict', `${path} already exists.`, {
        advice: 'To replace the credentials: `earshot credentials rotate`.',
      });
    }
    const next =
      config.endpoint.source === 'variables'
        ? 'Remove the two variables and restart the receiver.'
        : 'Start the receiver, then run `earshot register`.';
    io.stderr.write(`Credentials stored in ${path}. ${next}\n`);
  },
});

const rotateCommand = defineCommand('rotate', {
  description: 'Replace the endpoint credentials without losing notifications.',
  flags: (command) =>
    command
      .option(
        '--wait <seconds>',
        'maximum wait for pushes with the new credentials, in seconds',
        positiveNumber,
        waitSecondsDefault,
      )
      .option('--skip-probe', 'skip the check of the endpoint'),
  help: `The receiver must be running. During the rotation, the receiver accepts the old and the new
credentials. The old credentials become invalid when both conditions are true:
  - Every running subscription has pushed with the new credentials, or --wait has passed.
  - No push has used the old credentials for 30 seconds (with --wait below 60: half of --wait).
If the command is interrupted, then run the command again to continue.

Examples:
  $ earshot credentials rotate                  wait up to 10 minutes
  $ earshot credentials rotate --wait 120       wait up to 2 minutes
  $ earshot credentials rotate --skip-probe     do not check the endpoint first`,
  check: (_, io) => {
    const { endpoint } = loadAccountConfig(io, { publicUrl: true });
    if (endpoint.source === 'variables') throw setByVariables();
    if (endpoint.source === 'none') {
      throw new AppError('configuration', 'There are no credentials to rotate.', {
        advice: 'To create credentials: `earshot credentials create`.',
      });
    }
  },
  needs: ['account'],
  run: rotate,
});

async function rotate(
  { account, ...io }: Io & Pick<Parts, 'account'>,
  { wait, skipProbe = false }: { wait: number; skipProbe?: boolean },
): Promise<void> {
  const { dataDir } = loadAccountConfig(io, { publicUrl: true });
  const { rotateCredentials } = await import('../../admin/rotate-credentials.ts');
  await rotateCredentials(
    { waitMs: wait * 1000, skipProbe },
    {
      ...account,
      // Pushes have timestamps of the local clock.
      nowUs: io.nowUs,
      // Read under the lock, because another rotation may have just ended.
      readPairs: () => readCredentialsFile(dataDir) ?? [],
      // With a shared log, for all receivers.
      writePairs: (pairs) =>
        account.store.shared?.shareCredentials(pairs, io.signal) ??
        writeCredentialsFile(dataDir, pairs),
      newPair: () => newCredentials(io),
      report: (line) => void io.stderr.write(`${line}\n`),
      pause: async (ms) => {
        await pause(ms, io.signal);
        if (!io.signal.aborted) return;
        const message = 'Interrupted. The receiver accepts the old and the new credentials.';
        const advice = 'To continue: `earshot credentials rotate`.';
        throw new AppError('cancelled', message, { advice });
      },
    },
  );
}

function setByVariables(): AppError {
  const message =
    'The credentials are set by EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD, so earshot cannot rotate them.';
  const details = [
    'To enable rotation: run `earshot credentials create`, remove the two variables, restart the receiver, and rotate.',
    'To rotate manually: change the variables, restart the receiver, and run `earshot register` immediately. Until then, pushes with the old credentials are refused, and the catalogue retries each only three times.',
  ];
  return new AppError('usage', message, { details });
}

export const credentialsCommand = defineGroup('credentials', {
  description: 'Create or rotate the endpoint credentials.',
  help: `The catalogue sends these credentials with every push, and the receiver checks the credentials.

Examples:
  $ earshot credentials create                      create random credentials
  $ earshot credentials rotate                    replace the credentials while the receiver runs
  $ earshot credentials rotate --skip-probe       the same, without a check of the endpoint`,
  commands: [createCommand, rotateCommand],
});
