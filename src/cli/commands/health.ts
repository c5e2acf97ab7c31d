/** `earshot health`: asks the receiver on this machine whether it takes notifications. */
import { Command } from 'commander';
import { loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Io } from '../io.ts';
import { askReceiver } from '../running-receiver.ts';

export function healthCommand(io: Io): Command {
  return new Command('health')
    .description('Ask the receiver on this machine whether it can take a notification now.')
    .addHelpText(
      'after',
      `
For health checks of containers and for scripts; \`earshot doctor\` looks at everything else. Asks
where EARSHOT_LISTEN says, with the endpoint credentials, and needs the settings of the receiver.
Over HTTPS the certificate is not checked: the receiver is on this very machine, and asked by its
address. The receiver answers only after a commit to the disk that is no older than a few seconds.

Exit codes: 0 it can, 1 it cannot (the reason is on standard error), 2 wrong usage or configuration.

Example:
  $ earshot health`,
    )
    .action(() => health(io));
}

async function health(io: Io): Promise<void> {
  const { state, origin, reason } = await askReceiver(loadConfig(io, ['health']).health, io.signal);
  if (state === 'takes') io.stdout.write(`The receiver takes notifications (${origin}).\n`);
  else {
    throw new AppError(
      'unavailable',
      `The receiver takes no notifications (${origin}): ${reason}.`,
    );
  }
}
