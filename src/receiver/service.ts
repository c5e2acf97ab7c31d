/** Services that features add to a receiver: they run from before it listens until it stops. */
import type { ConsoleParts } from '../core/api/listener-slot.ts';
import type { Io } from '../core/cli/io.ts';
import type { StartConfig } from '../core/config/config.ts';
import type { Job } from '../core/host/job.ts';
import type { HandshakeOnly, KeyPair, Listener } from '../core/http/listener.ts';
import type { StatusPart } from '../core/status/status-part.ts';
import type { CommitFacts, Logger, Receipt } from '../core/terms/ports.ts';
import type { Store } from '../store/store.ts';
import type { Outcome } from './app.ts';

export interface ServiceContext {
  config: StartConfig;
  store: Store;
  statusParts: readonly StatusPart[];
  io: Io;
  log: Logger;
}

/** Certificate of the public listener. */
export interface ServedCertificate {
  handshakeOnly?: HandshakeOnly;
  /** Certificate and key in use; null while there is none. Times are microseconds since 1970, UTC. */
  served(): (KeyPair & { notBeforeUs: number; notAfterUs: number }) | null;
  /** Keeps the listener's certificate up to date from now on. */
  follow(listener: Pick<Listener, 'setKeyPair' | 'address'>): Pick<Job, 'stop'>;
}

export interface Service {
  /** Called for each request to `/notifications`; with the receipt when there is one. No function may throw. */
  observe?(outcome: Outcome, subscription: string | null, receipt?: Receipt): void;
  /** Called for each entry of a queue that was stored. */
  noteReceipt?(subscription: string, receipt: Receipt): void;
  /** Called after each commit of deliveries. */
  noteCommit?(commit: CommitFacts): void;
  /** Parts for jobs, and for the private listener. */
  parts?: Partial<ConsoleParts>;
  /** Without it, the public listener uses plain HTTP, behind a proxy. */
  certificate?: ServedCertificate | undefined;
  close?(): Promise<void>;
}

/** Starts a service. A rejection stops the receiver. */
export type StartService = (context: ServiceContext) => Promise<Service>;
