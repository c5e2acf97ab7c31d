/** The rows of the table that say whether backups are made by themselves. */
import { count, directory } from './value-schemas.ts';
import { variable } from './variable.ts';

export const backupVariables = {
  backupDir: variable({
    name: 'EARSHOT_BACKUP_DIR',
    schema: directory,
    description:
      'The folder into which the receiver puts backups by itself, best on another disk; one receiver, one folder. None are made unless it is set. The first backup creates the folder. They hold secrets, too, and are readable by their owner alone.',
    example: '/mnt/backups/earshot',
  }),
  backupEvery: variable({
    name: 'EARSHOT_BACKUP_EVERY',
    schema: count,
    default: '24',
    description: 'Hours from one backup to the next.',
    example: '24',
  }),
  backupKeep: variable({
    name: 'EARSHOT_BACKUP_KEEP',
    schema: count,
    default: '7',
    description:
      'How many backups stay in that folder. Older ones are removed when a new one was made and checked.',
    example: '7',
  }),
} as const;
