/** `earshot credentials`: the user name and password with which the catalogue logs in here. */
import {
  type AccountConfig,
  accountSections,
  loadAccountConfig,
  loadConfig,
} from '../../config/config.ts';
import {
  credentialsFileName,
  readCredentialsFile,
  writeCredentialsFile,
} from '../../config/endpoint-credentials.ts';
import { AppError } from '../../domain/app-error.ts';
import { newCredentials } from '../account.ts';
import { defineCommand, defineGroup, type Parts } from '../command.ts';
import { positiveNumber } from '../flags.ts';
import { type Io, pause } from '../io.ts';

const waitSecondsDefault = 600;
const lockWaitMs = 10_000;

const createCommand = defineCommand('create', {
  description:
    'Make endpoint credentials and keep them, for the owner only, in the data directory.',
  flags: (command) =>
    command.option('--from-variables', 'keep those of the variables, so that the variables can go'),
  help: `Nobody has to know them: the receiver reads them, and \`register\` tells the catalogue.

Example:
  $ earshot credentials create`,
  run: async (io: Io, flags: { fromVariables?: true }) => {
    const config = loadConfig(io, accountSections);
    const { createAcquireLock } = await import('../../store/engine/locks.ts');
    // Two first runs at the same moment must not overwrite each other's pair.
    const release = await createAcquireLock(config.dataDir)('subscriptions', {
      waitMs: lockWaitMs,
    });
    try {
      await create(config, flags, io);
    } finally {
      release();
    }
  },
});

async function create(
  { dataDir, endpoint }: AccountConfig,
  { fromVariables }: { fromVariables?: true },
  io: Io,
): Promise<void> {
  if (readCredentialsFile(dataDir) !== null) {
    throw new AppError('conflict', `There is an ${credentialsFileName} in ${dataDir} already.`, {
      advice: '`earshot credentials rotate` changes it.',
    });
  }
  if (endpoint.source === 'variables' && !fromVariables) {
    throw new AppError(
      'usage',
      'EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD set the credentials, so others would not be used.',
      {
        advice:
          'Add --from-variables to keep these in the data directory, then remove the variables.',
      },
    );
  }
  if (endpoint.source !== 'variables' && fromVariables) {
    throw new AppError(
      'usage',
      'EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD are not set.',
    );
  }
  await writeCredentialsFile(dataDir, fromVariables ? endpoint.pairs : [newCredentials(io)]);
  const next = fromVariables
    ? 'Now remove the two variables, and restart the receiver.'
    : 'Start the receiver, then run `earshot register`.';
  io.stderr.write(`The credentials are kept in ${dataDir}/${credentialsFileName}. ${next}\n`);
}

const rotateCommand = defineCommand('rotate', {
  description: 'Give the catalogue new credentials while the receiver accepts both.',
  flags: (command) =>
    command
      .option(
        '--wait <seconds>',
        'how long to wait for deliveries with the new ones',
        positiveNumber,
        waitSecondsDefault,
      )
      .option('--skip-probe', 'do not look whether the receiver accepts them'),
  help: `The receiver must be running; it notices by itself. The old credentials stop working when each
running subscription has delivered with the new ones, or the wait is over, and the old ones have
been out of use for half a minute (or half of a wait that is shorter). Interrupted anywhere, run it
again: it goes on.

Example:
  $ earshot credentials rotate --wait 120`,
  check: (_, io) => {
    const { endpoint } = loadAccountConfig(io);
    if (endpoint.source === 'variables') throw setByVariables();
    if (endpoint.source === 'none') {
      throw new AppError('configuration', 'There are no credentials to rotate.', {
        advice: '`earshot credentials create` makes some.',
      });
    }
  },
  needs: ['account'],
  account: () => ({ needsCredentials: true }),
  run: rotate,
});

async function rotate(
  { account, ...io }: Io & Pick<Parts, 'account'>,
  { wait, skipProbe = false }: { wait: number; skipProbe?: boolean },
): Promise<void> {
  const { dataDir } = loadAccountConfig(io);
  const { rotateCredentials } = await import('../../admin/rotate-credentials.ts');
  await rotateCredentials(
    { waitMs: wait * 1000, skipProbe },
    {
      ...account,
      // Deliveries are marked by this machine's clock.
      nowUs: io.nowUs,
      // Read under the lock: another rotation may have just ended.
      readPairs: () => readCredentialsFile(dataDir) ?? [],
      writePairs: (pairs) => writeCredentialsFile(dataDir, pairs),
      newPair: () => newCredentials(io),
      report: (line) => void io.stderr.write(`${line}\n`),
      pause: async (ms) => {
        await pause(ms, io.signal);
        if (!io.signal.aborted) return;
        throw new AppError('cancelled', 'Stopped.', {
          advice:
            'The receiver accepts the old and the new credentials; `earshot credentials rotate` goes on from here.',
        });
      },
    },
  );
}

function setByVariables(): AppError {
  return new AppError(
    'usage',
    'EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD set the credentials, so earshot cannot change them for you.',
    {
      details: [
        'To let it: run `earshot credentials create --from-variables`, remove the two variables, restart the receiver, and rotate.',
        'By hand: change the variables, restart the receiver, and run `earshot register` at once. What the catalogue sends in between with the old ones is refused, and tried three times only.',
      ],
    },
  );
}

export const credentialsCommand = defineGroup('credentials', {
  description: 'Make the endpoint credentials, or change them without losing a notification.',
  help: 'Examples:\n  $ earshot credentials create\n  $ earshot credentials rotate',
  commands: [createCommand, rotateCommand],
});
