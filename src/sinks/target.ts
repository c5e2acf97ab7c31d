/** What a kind of sink does, and what it works with. */
import { z } from 'zod';
import type { Finding } from '../domain/finding.ts';
import type { Cursors, Logger, NotificationLog } from '../domain/ports.ts';
import type { SinkRules, Sinks } from '../domain/sinks.ts';
import type { RunProgram } from '../host/run-program.ts';
import { holdsCertificates } from '../http/tls-settings.ts';
import type { SinkDocument } from './document.ts';

/**
 * A kind of sink: one file that exports it, and one line in `registry.ts`. `Fields` are the fields of a sink in
 * `earshot.config.ts` that belong to the kind, all optional; the one with the kind's own name is its target.
 */
export interface SinkKind<Fields extends z.ZodRawShape, Settings extends object> {
  fields: Fields;
  /** What is wrong between its fields; it is asked for sinks of other kinds, too. */
  faults?(sink: FieldValues<Fields>): string[];
  /** Fields within its target, for the advice about a misspelt one. */
  targetFields?: readonly string[];
  /** Default number of deliveries at a time. */
  concurrency: number;
  /** Settings of a sink of this kind; secrets and certificates are read from their files. */
  settings(sink: FieldValues<Fields>, readFile: ReadFile): Settings;
  /** Connects to nothing yet. Large libraries are imported with the first item. */
  open(settings: Settings, context: OpenContext): Target;
  /** The doctor's check that the target is there. Delivers nothing; never rejects. */
  check(settings: Settings, context: CheckContext): Promise<Omit<Finding, 'check'>>;
}

type FieldValues<Fields extends z.ZodRawShape> = z.output<z.ZodObject<Fields>>;

/** Any kind; only fields and settings of the kind may be passed to it. */
export type AnySinkKind = SinkKind<z.ZodRawShape, object>;

/** Infers the types of a kind from its fields and settings. */
export function defineSinkKind<Fields extends z.ZodRawShape, Settings extends object>(
  kind: SinkKind<Fields, Settings>,
): SinkKind<Fields, Settings> {
  return kind;
}

/** Returns null when no file is named, or it cannot be used. */
export type ReadFile = (field: string, file: string | undefined, form: FileForm) => string | null;

export interface FileForm {
  /** A secret is read without the line feed at its end; not everybody may read its file. */
  isSecret: boolean;
  faultOf: (content: string) => string | null;
}

export const secretForm: FileForm = {
  isSecret: true,
  faultOf: (secret) => (secret === '' ? 'the file is empty.' : null),
};

export const certificatesForm: FileForm = {
  isSecret: false,
  faultOf: (pem) => (holdsCertificates(pem) ? null : 'the file does not hold PEM certificates.'),
};

/** The name of a file, or of a user. */
export const nameField = (example: string) => {
  const form = `must be a text that is not empty, such as '${example}'`;
  return z.string(form).min(1, form);
};

export type OpenContext = Pick<SinkRules, 'name' | 'timeoutMs'> &
  Pick<SinkContext, 'run' | 'fetch' | 'nowUs'> & { logger: Pick<Logger, 'info'> };

export interface CheckContext {
  sink: SinkRules;
  /** Null when the program can be started, else why not. */
  findProgram: (program: string) => string | null;
  /** Names of subscriptions that may stand in a subject; `default` when there are none. */
  subscriptions: readonly string[];
  signal: AbortSignal;
}

export type TargetAnswer = { kind: 'taken' } | TargetFailure;

export type TargetFailure =
  /** It answers, and refuses this item: retried a few times, then a dead letter. */
  | { kind: 'refused'; reason: string }
  /** Not this item's fault. The delay is what it asked for; null when it did not. */
  | { kind: 'unavailable'; reason: string; retryAfterMs: number | null }
  /** Nothing can be delivered before somebody fixes something. */
  | { kind: 'misconfigured'; reason: string };

/** A failure that is not the item's fault, without a requested delay. */
export function unavailable(reason: string): TargetFailure {
  return { kind: 'unavailable', reason, retryAfterMs: null };
}

export interface Target {
  /**
   * Delivers one item. Resolves soon after the signal is aborted, then with any answer. Rejects only when the item
   * itself cannot be sent, such as a record that cannot be written as JSON. Reasons complete "… does not take it: "
   * and contain no secret.
   */
  deliver(item: SinkDocument, signal: AbortSignal): Promise<TargetAnswer>;
  close(): Promise<void>;
}

export interface SinkContext {
  sinks: Sinks;
  log: Pick<NotificationLog, 'find' | 'body' | 'lastPosition'> & Pick<Cursors, 'cursor'>;
  /** Microseconds since 1970, UTC. */
  nowUs: () => number;
  /** A number in [0, 1), for jitter. */
  random: () => number;
  /** Resolves after a time, or soon after the signal is aborted; never rejects. All waits are made with it. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  logger: Logger;
  fetch: typeof fetch;
  run: RunProgram;
}
