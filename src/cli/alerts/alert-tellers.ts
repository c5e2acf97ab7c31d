/** Composes the channels that alerts are told through. */
import type { WatchConfig } from '../../config/config.ts';
import type { AlertChannel } from '../../domain/alerts.ts';
import { createCommandTeller } from '../../watch/telling/tell-command.ts';
import { tellThrough } from '../../watch/telling/tell-through.ts';
import { createUrlTeller } from '../../watch/telling/tell-url.ts';
import type { Tell } from '../../watch/watch-world.ts';
import type { Io } from '../io.ts';
import { createRunProgram } from '../run-program.ts';

export interface AlertTellers {
  channels: readonly AlertChannel[];
  tell: Tell;
}

export function alertTellers(
  { alertUrl, alertCommand }: Pick<WatchConfig, 'alertUrl' | 'alertCommand'>,
  { fetch, random, env }: Pick<Io, 'fetch' | 'random' | 'env'>,
): AlertTellers {
  const url =
    alertUrl === null
      ? null
      : createUrlTeller({ url: alertUrl, variable: 'EARSHOT_ALERT_URL', fetch, random });
  const command =
    alertCommand === null
      ? null
      : createCommandTeller({
          command: alertCommand,
          run: createRunProgram({ env }),
          variable: 'EARSHOT_ALERT_COMMAND',
        });
  return {
    channels: [
      ...(url === null ? [] : ['url' as const]),
      ...(command === null ? [] : ['command' as const]),
    ],
    tell: tellThrough({
      ...(url === null ? {} : { url }),
      ...(command === null ? {} : { command }),
    }),
  };
}
