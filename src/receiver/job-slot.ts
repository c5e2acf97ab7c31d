/** Background jobs that a feature adds to `earshot start`. */
import type { Io } from '../core/cli/io.ts';
import type { StartConfig } from '../core/config/config.ts';
import type { Job } from '../core/host/job.ts';
import type { Logger } from '../core/terms/ports.ts';
import type { RunningReceiver } from './serve.ts';

export interface JobContext {
  receiver: RunningReceiver;
  settings: StartConfig;
  /** Version of earshot. */
  version: string;
  io: Io;
  log: Logger;
  /** Returns why the current earshot.config.ts is rejected, which is already logged; null if it is in effect. */
  rejected: () => string | null;
  /** Jobs of this receiver that were started earlier. */
  jobs: ReadonlyMap<string, RunningJob>;
}

export interface RunningJob extends Job {
  /** Applies a changed earshot.config.ts, which is valid. */
  reload?(): Promise<void>;
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
