/** What the load generator is told on its standard input and reports on its standard output. */
import type { SequenceRange } from './answered-ranges.ts';
import type { AckIdForm } from './request-ids.ts';

/** One JSON object on the generator's standard input. */
export interface LoadJob {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly authorityPem: string;
  readonly username: string;
  readonly password: string;
  readonly ackIdForm: AckIdForm;
  readonly connections: number;
  /** Different bodies that are sent in turn, at least one for each connection. */
  readonly templateCount: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** 0 to 65,535; makes the ids of this run unlike those of any other. */
  readonly run: number;
  /** Whose processor time is read beside the generator's own. */
  readonly serverProcessId: number;
}

/** One JSON object on the generator's standard output. */
export interface LoadResult {
  /** Answers of any status within the measured time, per second. */
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Number of answers by status, warm-up included. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Number of broken connections by reason, warm-up included. */
  readonly breaks: Readonly<Record<string, number>>;
  /** Processor time of the generator over wall time while measuring: 1 is one core. */
  readonly generatorCores: number;
  /** The same of the server; null where /proc does not tell it. */
  readonly serverCores: number | null;
  /** The same of everything else on the machine; more than a little spoils the figures. */
  readonly otherCores: number | null;
  /** Sequence numbers that were answered with 200, warm-up included. */
  readonly answered: readonly SequenceRange[];
}
