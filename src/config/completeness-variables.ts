/** The rows of the table that say how missing events are looked up, and where alerts are told. */
import { z } from 'zod';
import { commandLine, count, exactUrl } from './value-schemas.ts';
import { variable } from './variable.ts';

export const completenessVariables = {
  reconcile: variable({
    name: 'EARSHOT_RECONCILE',
    schema: z.enum(['on', 'off']),
    default: 'on',
    description:
      'Whether the receiver compares the log with the catalogue by itself, and writes what is missing into it. `earshot reconcile` works either way.',
    example: 'on',
  }),
  reconcileRequestsPerMinute: variable({
    name: 'EARSHOT_RECONCILE_REQUESTS_PER_MINUTE',
    schema: count,
    default: '60',
    description:
      'How many requests for lists of products the catalogue gets in a minute at the most, one after the other. One brings up to 1,000 products.',
    example: '60',
  }),
  alertUrl: variable({
    name: 'EARSHOT_ALERT_URL',
    schema: exactUrl,
    secret: true,
    description:
      'Where alerts are posted as JSON, with a `text` that incoming webhooks of chat systems show. A secret, as such addresses let anybody post.',
    example: 'https://chat.example.org/hooks/abcdef',
  }),
  alertCommand: variable({
    name: 'EARSHOT_ALERT_COMMAND',
    schema: commandLine,
    description:
      'A program that is run for each alert, with the same JSON on its standard input; arguments follow with blanks between them, no shell reads them.',
    example: '/usr/local/bin/tell-me --urgent',
  }),
} as const;
