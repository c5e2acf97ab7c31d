/** Background jobs that a feature adds to `earshot start`. */

import type { ConsoleParts } from '../core/api/listener-slot.ts';
import type { Io } from '../core/cli/io.ts';
import type { StartConfig } from '../core/config/config.ts';
import type { Job } from '../core/host/job.ts';
import type { HandshakeOnly, KeyPair, Listener } from '../core/http/listener.ts';
import type { StatusPart } from '../core/status/status.ts';
import type { CommitFacts, Logger, Receipt } from '../core/terms/ports.ts';
import type { Store } from '../store/store.ts';
import type { Outcome } from './app.ts';
import type { RunningReceiver } from './serve.ts';

export interface JobContext {
  receiver: RunningReceiver;
  settings: StartConfig;
  /** Version of earshot. */
  version: string;
  io: Io;
  log: Logger;
  /** Jobs of this receiver that were started earlier. */
  jobs: ReadonlyMap<string, RunningJob>;
}

export interface RunningJob extends Job {
  /** State for the status and for other jobs. */
  state?: unknown;
}

export interface JobSlot {
  name: string;
  /** `each`: on every receiver. `leader`: on one of the receivers of a shared log. */
  runsOn: 'each' | 'leader';
  /** Starts the job; null if the settings disable it. A rejection stops the receiver. */
  start(context: JobContext): Promise<RunningJob | null>;
}

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
