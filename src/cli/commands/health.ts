/** `earshot health`: asks the receiver on this machine whether it takes notifications. */
import { loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { defineCommand } from '../command.ts';
import { askReceiver } from '../running-receiver.ts';

export const healthCommand = defineCommand('health', {
  description: 'Ask the receiver on this machine whether it can take a notification now.',
  help: `For health checks of containers and for scripts; \`earshot doctor\` looks at everything else. Asks
where EARSHOT_LISTEN says, with the endpoint credentials, and needs the settings of the receiver.
Over HTTPS the certificate is not checked: the receiver is on this very machine, and asked by its
address. The receiver answers only after a commit to the disk that is no older than a few seconds.

Exit codes: 0 it can, 1 it cannot (the reason is on standard error), 2 wrong usage or configuration.

Example:
  $ earshot health`,
  run: async (io) => {
    const { health } = loadConfig(io, ['health']);
    const { state, origin, reason } = await askReceiver(health, io.signal);
    if (state !== 'takes') {
      throw new AppError(
        'unavailable',
        `The receiver takes no notifications (${origin}): ${reason}.`,
      );
    }
    io.stdout.write(`The receiver takes notifications (${origin}).\n`);
  },
});
