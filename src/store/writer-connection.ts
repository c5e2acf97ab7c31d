/** The writing connection: opened when needed, closed and opened anew after a failure of the file. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import { inodeOf, openForWriting } from './database.ts';
import { createDeliveryWriter, type DeliveryWriter } from './delivery-writer.ts';
import { needsReopening } from './sqlite-error.ts';

export interface WriterConnection {
  /** Runs one transaction; it is on disk when this returns. Any failure leaves the file as it was. */
  transact<T>(work: (writer: DeliveryWriter, database: Database) => T): T;
  close(): void;
}

export function createWriterConnection(dataDir: string): WriterConnection {
  let open: { database: Database; writer: DeliveryWriter; inode: number } | undefined;

  function ensureOpen() {
    // A file that was moved or deleted under us would take commits that nobody finds again. It is told
    // once, as a failure; the next delivery starts a new file.
    if (open !== undefined && inodeOf(open.database.name) !== open.inode) {
      close();
      throw new AppError(
        'unavailable',
        'The database file was moved or deleted while earshot ran. Put it back and restart, or a new one is started.',
      );
    }
    if (open === undefined) {
      const database = openForWriting(dataDir);
      const writer = createDeliveryWriter(database);
      open = { database, writer, inode: inodeOf(database.name) };
    }
    return open;
  }

  function close() {
    const closing = open;
    open = undefined;
    closing?.database.close();
  }

  return {
    transact: (work) => {
      const { database, writer } = ensureOpen();
      try {
        return database
          .transaction(() => {
            writer.begin();
            const result = work(writer, database);
            writer.end();
            return result;
          })
          .immediate();
      } catch (error) {
        if (needsReopening(error)) close();
        throw error;
      }
    },
    close,
  };
}
