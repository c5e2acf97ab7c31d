/** Settings of backups. */
import { defineSections, defineVariables, type Loaded } from '../../core/config/load.ts';
import * as values from '../../core/config/variables.ts';

declare module '../../core/config/config.ts' {
  interface Config extends Loaded<typeof sections> {}
  interface StartConfig extends Pick<Config, 'backup'> {}
}

export const variables = defineVariables({
  EARSHOT_BACKUP_DIR: {
    schema: values.directory,
    isTrusted: true,
    description:
      'Directory for automatic backups, preferably on another disk. Each receiver needs a separate directory, which the first backup creates. Without this variable, the receiver creates no backups. Backups contain secrets; only the owner can read the files.',
    example: '/mnt/backups/earshot',
  },
  EARSHOT_BACKUP_EVERY: {
    schema: values.count,
    default: '24',
    description: 'Interval of automatic backups, in hours.',
    example: '24',
  },
  EARSHOT_BACKUP_KEEP: {
    schema: values.count,
    default: '7',
    description:
      'Number of automatic backups to keep. Older backups are deleted after a new backup has been created and verified.',
    example: '7',
  },
});

export const sections = defineSections(variables, {
  backup: ({ value }) => ({
    /** Null when the receiver makes no backups. */
    folder: value('EARSHOT_BACKUP_DIR') ?? null,
    everyHours: value('EARSHOT_BACKUP_EVERY'),
    /** Number of backups to keep. */
    keep: value('EARSHOT_BACKUP_KEEP'),
  }),
});

export const groups = { start: ['backup'] };
