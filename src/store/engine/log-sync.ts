/**
 * Syncs the write-ahead log of a thread on the main thread, so that the thread writes the next group meanwhile: a sync
 * takes as long as writing five notifications.
 */
import fs from 'node:fs';
import { AppError } from '../../domain/app-error.ts';
import { inodeOf } from './database.ts';

/** A step that waits for a sync, or only for the steps before it. */
interface Waiting {
  /** Inode of the log that must be synced; undefined for none. */
  inode: number | undefined;
  done: (failure: SyncFailure | null) => void;
}

export interface SyncFailure {
  error: AppError;
  /** True if the file was moved or deleted: its writer then saves what it contains. */
  isReplaced: boolean;
}

export class LogSync {
  readonly #file: string;
  #open: { descriptor: number; inode: number } | undefined;
  #waiting: Waiting[] = [];
  #isSyncing = false;
  #isClosing = false;

  constructor(file: string) {
    this.#file = file;
  }

  /**
   * Calls `done` after all steps before it, when everything that was written to the log before this call is on disk.
   * One sync serves all steps that wait for it.
   */
  after(inode: number | undefined, done: Waiting['done']): void {
    this.#waiting.push({ inode, done });
    if (!this.#isSyncing) this.#sync();
  }

  /** The writer closes its database, which copies the log into it, syncs it, and removes the log. */
  expectRemoval(): void {
    this.#isClosing = true;
  }

  close(): void {
    if (this.#open !== undefined) fs.closeSync(this.#open.descriptor);
    this.#open = undefined;
  }

  #sync(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#isSyncing = true;
    const [inode, ...others] = new Set(waiting.flatMap((one) => one.inode ?? []));
    const settle = (cause: unknown) => {
      const failure = inode === undefined ? null : this.#failureOf(cause, inode, others.length > 0);
      for (const one of waiting) one.done(one.inode === undefined ? null : failure);
      this.#isSyncing = false;
      if (this.#waiting.length > 0) this.#sync();
    };
    let descriptor: number | undefined;
    try {
      descriptor = inode && this.#descriptorOf(inode);
    } catch (error) {
      settle(error);
      return;
    }
    // As SQLite does; on macOS, Node also empties the drive's cache.
    if (descriptor === undefined) settle(null);
    else fs.fdatasync(descriptor, settle);
  }

  /** Checks the file after the sync: otherwise commits to a removed log would be answered. */
  #failureOf(cause: unknown, inode: number, hasOthers: boolean): SyncFailure | null {
    const now = inodeOf(this.#file);
    if (this.#isClosing && now === -1) return null;
    const isReplaced = hasOthers || now !== inode;
    return cause || isReplaced ? { error: syncError(cause), isReplaced } : null;
  }

  /** SQLite's locks are on other files, so opening and closing this one does not release them. */
  #descriptorOf(inode: number): number {
    if (this.#open?.inode === inode) return this.#open.descriptor;
    this.close();
    const descriptor = fs.openSync(this.#file, 'r+');
    this.#open = { descriptor, inode: fs.fstatSync(descriptor).ino };
    return descriptor;
  }
}

function syncError(cause: unknown): AppError {
  return new AppError('unavailable', 'The disk could not confirm a write.', {
    advice: 'Check its free space and the system log.',
    cause,
  });
}
