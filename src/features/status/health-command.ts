/** `earshot admin health`: checks the receiver on this machine. */

import { needsEndpoint } from '../../admin/subscription-ways.ts';
import { defineCommand } from '../../core/cli/command.ts';
import type { Io } from '../../core/cli/io.ts';
import { loadConfig } from '../../core/config/config.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { type ProbedAddress, probeReceiver } from '../../receiver/running-receiver.ts';

/** Returns the private listener of a receiver that only reads queues. */
async function addressOf(io: Io): Promise<ProbedAddress> {
  if (await needsEndpoint(io)) return loadConfig(io, ['health']).health;
  const { console } = loadConfig(io, ['console']);
  if (console !== null && console.listen.port !== 0)
    return { listen: console.listen, secure: false, credentials: null };
  throw new AppError(
    'configuration',
    'This command needs EARSHOT_CONSOLE_LISTEN with a fixed port, because the receiver has no public listener.',
    { advice: 'Set EARSHOT_CONSOLE_LISTEN, or use `earshot status`.' },
  );
}

export const healthCommand = defineCommand('health', {
  description: 'Check if the receiver on this machine can store notifications now.',
  help: `Use the command for health checks of containers, and in scripts. The command sends a request to
EARSHOT_LISTEN with the endpoint credentials, and therefore needs the settings of the receiver. If
all subscriptions are pull, then the request is sent to EARSHOT_CONSOLE_LISTEN. Over
HTTPS, the certificate is not verified, because the address is local. The receiver reports success
if a commit to disk succeeded in the last few seconds. For all other checks, run \`earshot doctor\`.

Exit codes: 0 healthy, 1 not healthy (reason on standard error), 2 wrong usage or configuration.

Examples:
  $ earshot admin health    print the state
  $ docker exec earshot earshot admin health > /dev/null    use the exit code, in a container
  $ until earshot admin health; do sleep 2; done    wait until the receiver accepts notifications`,
  run: async (io) => {
    const { state, origin, reason } = await probeReceiver(await addressOf(io), io.signal);
    if (state !== 'accepting') {
      throw new AppError(
        'unavailable',
        `The receiver does not accept notifications (${origin}): ${reason}.`,
      );
    }
    io.stdout.write(`The receiver accepts notifications (${origin}).\n`);
  },
});
