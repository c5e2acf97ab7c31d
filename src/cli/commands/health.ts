/** `earshot health`: checks the receiver on this machine. */
import { loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { defineCommand } from '../command.ts';
import { probeReceiver } from '../running-receiver.ts';

export const healthCommand = defineCommand('health', {
  description: 'Check if the receiver on this machine can store notifications now.',
  help: `Use the command for health checks of containers, and in scripts. The command sends a request to
EARSHOT_LISTEN with the endpoint credentials, and therefore needs the settings of the receiver. Over
HTTPS, the certificate is not verified, because the address is local. The receiver reports success
if a commit to disk succeeded in the last few seconds. For all other checks, run \`earshot doctor\`.

Exit codes: 0 healthy, 1 not healthy (reason on standard error), 2 wrong usage or configuration.

Examples:
  $ earshot health                                     print the state
  $ docker exec earshot earshot health > /dev/null     use the exit code, in a container
  $ until earshot health; do sleep 2; done             wait until the receiver accepts notifications`,
  run: async (io) => {
    const { health } = loadConfig(io, ['health']);
    const { state, origin, reason } = await probeReceiver(health, io.signal);
    if (state !== 'accepting') {
      throw new AppError(
        'unavailable',
        `The receiver does not accept notifications (${origin}): ${reason}.`,
      );
    }
    io.stdout.write(`The receiver accepts notifications (${origin}).\n`);
  },
});
