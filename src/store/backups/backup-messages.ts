/** What the thread for backups is asked. */
import type { BackupAbout, KeptFile } from './backup-contents.ts';

/** Copies the store into the file, which is there and empty, and checks the copy. */
export interface CopyRequest {
  file: string;
  about: BackupOrigin;
  files: readonly KeptFile[];
}

/** What is known of a backup before it is made. */
export type BackupOrigin = Pick<BackupAbout, 'madeAtUs' | 'version'>;

/** What a copy holds. */
export type Copied = Pick<BackupAbout, 'lastPosition' | 'notifications'>;

export interface BackupProgress {
  /** `copying` counts pages or bytes, `comparing` rows, `sealing` and `verifying` bytes. */
  phase: 'copying' | 'comparing' | 'checking' | 'sealing' | 'verifying';
  done: number;
  /** Null where nobody knows how many there will be. */
  total: number | null;
}
