/** Settings of alerts. */

import type { Config } from '../../core/config/config.ts';
import { defineSections, defineVariables, type Loaded } from '../../core/config/load.ts';
import * as values from '../../core/config/variables.ts';
import { exactUrl } from '../../core/http/network-address.ts';

declare module '../../core/config/config.ts' {
  interface Config extends Loaded<typeof sections> {}
  interface StartConfig extends Pick<Config, 'alertUrl' | 'alertCommand'> {}
}

export const variables = defineVariables({
  EARSHOT_ALERT_URL: {
    schema: exactUrl,
    secret: true,
    description:
      'URL to which the receiver sends alerts as JSON (POST). The field `text` is for incoming webhooks of chat systems. The URL is a secret: anybody who has the URL can post.',
    example: 'https://chat.example.org/hooks/abcdef',
  },
  EARSHOT_ALERT_COMMAND: {
    schema: values.commandLine,
    description:
      'Program that the receiver runs for each alert, with the alert as JSON on standard input. Spaces separate the arguments; no shell is used.',
    example: '/usr/local/bin/send-alert --urgent',
  },
});

export const sections = defineSections(variables, {
  alertUrl: ({ value }) => value('EARSHOT_ALERT_URL') ?? null,
  /** Program and arguments. */
  alertCommand: ({ value }) => value('EARSHOT_ALERT_COMMAND') ?? null,
});

/** Sections of the notification channels. */
export const channelSections = ['alertUrl', 'alertCommand'] as const;

export const groups = { start: channelSections };

export type ChannelConfig = Pick<Config, (typeof channelSections)[number]>;
