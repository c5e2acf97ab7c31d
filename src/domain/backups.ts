/** What is remembered of backups. All times are microseconds since 1970, UTC. */

/** A backup that was made, or tried in vain. */
export interface BackupRun {
  /** Absolute path of the copy. */
  file: string;
  startedAtUs: number;
  endedAtUs: number;
  /** Size of the copy; null for one that failed. */
  bytes: number | null;
  /** The last position of the log in the copy; null for one that failed. */
  lastPosition: number | null;
  /** Why it failed, in words for people and without secrets; null for one that was made. */
  error: string | null;
}

export interface LastBackups {
  /** The last one that was made and verified; null when none ever was. */
  made: BackupRun | null;
  /** The last one that failed; null when none did. It may be older than `made`. */
  failed: BackupRun | null;
}

/** Rejects with `unavailable`. */
export interface BackupReader {
  lastBackups(): Promise<LastBackups>;
}

export interface Backups extends BackupReader {
  /** Remembers a run in the place of the last one with the same end. Rejects with `unavailable`. */
  recordBackup(run: BackupRun): Promise<void>;
}
