/** Settings of the shared log. */
import { z } from 'zod';
import {
  defineSections,
  defineVariables,
  type Loaded,
  type Reader,
} from '../../core/config/load.ts';
import { databaseUrls } from '../../core/http/network-address.ts';

declare module '../../core/config/config.ts' {
  interface Config extends Loaded<typeof sections> {}
  interface DataConfig extends Pick<Config, 'sharedLog'> {}
}

export const variables = defineVariables({
  EARSHOT_LOG_URL: {
    schema: databaseUrls,
    secret: true,
    description:
      'The PostgreSQL database of the shared log, for several receivers. Separate several servers (a primary and its standby) by commas. By default, the receiver has a log of its own in the data directory.',
    example: 'postgres://earshot:a-long-random-text@db1:5432,db2:5432/earshot',
  },
  EARSHOT_LOG_SYNC: {
    schema: z.enum(['any', 'standby']),
    default: 'any',
    description:
      '`standby`: notifications are accepted only with a synchronous standby of the database. `any`: also without a standby; then a failure of the database server can lose accepted notifications.',
    example: 'standby',
  },
  EARSHOT_NODE: {
    schema: z.string().regex(/^[a-z0-9][a-z0-9.-]{0,62}$/i, 'must be a name such as receiver-1'),
    description:
      'Name of this receiver in messages, if several receivers share a log. The default is the host name.',
    example: 'receiver-1',
  },
});

export const sections = defineSections(variables, {
  sharedLog: readSharedLog,
});

export const groups = { data: ['sharedLog'] };

/** Reads the database of the shared log; null when this receiver has a log of its own. */
function readSharedLog({ value, report, failed }: Reader<typeof variables>) {
  const urls = value('EARSHOT_LOG_URL');
  const needsStandby = value('EARSHOT_LOG_SYNC') === 'standby';
  const nodeName = value('EARSHOT_NODE') ?? null;
  if (urls !== undefined) return { urls, needsStandby, nodeName };
  if (needsStandby && !failed('EARSHOT_LOG_URL')) {
    report(
      'EARSHOT_LOG_SYNC',
      'EARSHOT_LOG_SYNC is standby, but EARSHOT_LOG_URL is not set.',
      'Set EARSHOT_LOG_URL to the database of the shared log.',
    );
  }
  return null;
}
