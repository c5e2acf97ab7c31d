/** Measurements outside the store. A probe rejects when it cannot measure; the others are still used. */
import type { DiskSpace } from '../../core/terms/ports.ts';
import type { DatabaseWarning, KnownNode } from '../shared-log/terms.ts';

/** The certificate of the public listener. Times are null before the first one. */
export interface Certificate {
  notAfterUs: number | null;
  lifetimeUs: number | null;
  lastFailure: string | null;
}

export interface SharedReceivers {
  /** Id of this receiver. */
  ownId: string;
  nodes: readonly KnownNode[];
}

export interface Probes<Known extends Certificate = Certificate> {
  /** Returns null behind a proxy, or when there is none to check. */
  certificate(): Promise<Known | null>;
  /** Returns the space of the file system of the data directory; null when not known. */
  disk(): Promise<DiskSpace | null>;
  /** Returns why notifications cannot be stored; null when they can. */
  intake(): Promise<string | null>;
  /** Returns all receivers of the shared log, with this one; null without a shared log. */
  receivers?(): Promise<SharedReceivers | null>;
  /** Returns the warnings of the database of the shared log. */
  databaseWarnings?(): readonly DatabaseWarning[];
}
