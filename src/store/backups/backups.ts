/** What is remembered of backups, over the store's two threads. */
import type { BackupReader, Backups, LastBackups } from '../../domain/backups.ts';
import type { MessageThread, QueryRequest, WriterRequest } from '../messages.ts';

/** The question, asked on the query thread. */
export function createBackupReader(thread: MessageThread<QueryRequest>): BackupReader {
  return { lastBackups: () => thread.call<LastBackups>((id) => ({ op: 'last-backups', id })) };
}

/** The question, and the change, made on the writer thread. */
export function createBackups(reader: BackupReader, thread: MessageThread<WriterRequest>): Backups {
  return {
    ...reader,
    recordBackup: (run) => thread.call<void>((id) => ({ op: 'record-backup', id, run })),
  };
}
