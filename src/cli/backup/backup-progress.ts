/** Shows on a terminal how far a backup, or its restoring, is: one line, written over and over. */
import type { BackupProgress } from '../../store/backups/backup-target.ts';
import type { Io } from '../io.ts';

const rowsText = new Intl.NumberFormat('en');

const words: Record<BackupProgress['phase'], string> = {
  copying: 'Copying',
  comparing: 'Comparing',
  checking: 'Looking at the structure',
  sealing: 'Sealing',
  verifying: 'Verifying',
};

function textOf({ phase, done, total }: BackupProgress): string {
  if (total !== null) return `${words[phase]}: ${Math.floor((done / total) * 100)} %`;
  return done === 0 ? words[phase] : `${words[phase]}: ${rowsText.format(done)} rows`;
}

export function createBackupProgress({ stderr }: Pick<Io, 'stderr'>): {
  show(progress: BackupProgress): void;
  /** Takes the line away. */
  done(): void;
} {
  let shown = '';
  const write = (text: string) => {
    if (stderr.isTTY !== true || text === shown) return;
    stderr.write(`\r${text.padEnd(shown.length)}`);
    shown = text;
  };
  return {
    show: (progress) => write(textOf(progress)),
    done: () => {
      if (shown !== '') stderr.write(`\r${' '.repeat(shown.length)}\r`);
    },
  };
}
