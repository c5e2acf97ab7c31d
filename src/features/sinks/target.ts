/** Interface of a kind of sink, and its context. */
import { once } from 'node:events';
import { z } from 'zod';
import type { RunProgram } from '../../core/host/run-program.ts';
import { isLoopbackHost } from '../../core/http/network-address.ts';
import { holdsCertificates } from '../../core/http/tls-settings.ts';
import { type Evaluation, evaluation, ok } from '../../core/terms/evaluation.ts';
import type { Cursors, Logger, NotificationLog } from '../../core/terms/ports.ts';
import type { IntakeActivity } from '../../store/log/intake-queue.ts';
import type { FormatName, Message, MessageUrls } from '../messages/formats.ts';
import type { SinkRules, Sinks } from './terms.ts';

/**
 * A kind of sink: a file that exports it, and a line in `registry.ts`. `Fields` are the kind's fields of a sink in
 * `earshot.config.ts`, all optional; the field with the name of the kind defines its target.
 */
export interface SinkKind<Fields extends z.ZodRawShape, Settings extends object> {
  fields: Fields;
  /** Returns faults in the combination of fields. Also called for sinks of other kinds. */
  faults?(sink: SinkFields<Fields>): string[];
  /** Its only format; by default it supports all. */
  format?: FormatName;
  /** True if its targets deliver batches. */
  batches?: true;
  /** Default number of deliveries at a time. */
  concurrency: number;
  /** Returns the settings of a sink; reads secrets and certificates from their files. */
  settings(sink: SinkFields<Fields>, readFile: ReadFile): Settings;
  /** Opens a target without connecting. Large libraries are imported with the first item. */
  open(settings: Settings, context: OpenContext): Target;
  /** Runs the doctor's check of the target. Delivers nothing; never rejects. */
  check(settings: Settings, context: CheckContext): Promise<Evaluation>;
}

/** A kind whose client library runs in a thread of each sink. */
export interface ThreadKind<Fields extends z.ZodRawShape, Settings extends object>
  extends Omit<SinkKind<Fields, Settings>, 'open' | 'check'> {
  /** Imports the client library. */
  load(): Promise<unknown>;
  open(settings: Settings, context: Omit<OpenContext, 'run' | 'logger' | 'nowUs'>): Target;
  check(settings: Settings, context: Omit<CheckContext, 'findProgram'>): Promise<Evaluation>;
}

/** The kind's own fields of a sink, and those of every sink that a kind may ask for. */
type SinkFields<Fields extends z.ZodRawShape> = z.output<z.ZodObject<Fields>> & {
  format?: FormatName | undefined;
  batch?: object | undefined;
};

/** Any kind. Callers must only pass fields and settings of that kind. */
export type AnySinkKind = SinkKind<z.ZodRawShape, object>;

/** Infers the types of a kind from its fields and settings. */
export const defineSinkKind = <Fields extends z.ZodRawShape, Settings extends object>(
  kind: SinkKind<Fields, Settings>,
) => kind;

export const defineThreadKind = <Fields extends z.ZodRawShape, Settings extends object>(
  kind: ThreadKind<Fields, Settings>,
) => kind;

/** Returns null if no file is configured, or if it is unusable. */
export type ReadFile = (field: string, file: string | undefined, form: FileForm) => string | null;

export interface FileForm {
  /** A secret is read without its final line feed, and its file must not be readable by everyone. */
  isSecret: boolean;
  faultOf: (content: string) => string | null;
}

export const secretForm: FileForm = {
  isSecret: true,
  faultOf: (secret) => (secret === '' ? 'the file is empty.' : null),
};

export const certificatesForm: FileForm = {
  isSecret: false,
  faultOf: (pem) => (holdsCertificates(pem) ? null : 'the file does not contain PEM certificates.'),
};

/** Schema of the name of a file or a user. */
export const nameField = (example: string) => {
  const form = `must be a non-empty string, such as '${example}'`;
  return z.string(form).min(1, form);
};

export type OpenContext = Pick<SinkRules, 'name' | 'timeoutMs'> &
  Pick<SinkContext, 'run' | 'nowUs'> & { format: FormatName; logger: Pick<Logger, 'info'> };

export interface CheckContext {
  sink: SinkRules;
  /** Returns null if the program can be started, otherwise the reason. */
  findProgram: (program: string) => string | null;
  signal: AbortSignal;
}

export type TargetAnswer = { kind: 'acknowledged' } | TargetFailure;

export type TargetFailure =
  /** The target refused this item: retried a few times, then a dead letter. */
  | { kind: 'refused'; reason: string }
  /** Temporary failure, not the item's fault. `retryAfterMs` is the requested delay, if any. */
  | { kind: 'unavailable'; reason: string; retryAfterMs: number | null }
  /** Nothing can be delivered until the user fixes the configuration. */
  | { kind: 'misconfigured'; reason: string };

/** Returns the evaluation of a target that cannot be used, for the doctor. */
export function unusable(target: string, reason: string): Evaluation {
  const nextStep =
    'Start the server, or correct the URL, the login or the certificate of the sink in earshot.config.ts. Until then, notifications are queued.';
  return evaluation('critical', `${target} cannot be used: ${reason}.`, nextStep);
}

/** Returns the evaluation of a usable server: a warning if a login is sent to another machine without TLS. */
export function usable(
  message: string,
  urls: readonly string[],
  { login, secure }: { login: object | null; secure: 'tls' | 'mqtts' },
): Evaluation {
  const exposed = urls
    .map((url) => new URL(url))
    .filter(({ protocol }) => protocol !== `${secure}:`)
    .find(({ hostname }) => !isLoopbackHost(hostname.replace(/^\[|\]$/g, '')));
  if (login === null || exposed === undefined) return ok(message);
  const text = `${message} The login and the notifications are sent unencrypted: ${exposed.protocol}// has no TLS.`;
  const nextStep = `Enable TLS on the server, and use ${secure}:// for the sink.`;
  return evaluation('warning', text, nextStep);
}

/** Returns a temporary failure without a requested delay. */
export function unavailable(reason: string): TargetFailure {
  return { kind: 'unavailable', reason, retryAfterMs: null };
}

/** Rejects with the reason of the signal when it is aborted; never resolves. */
export async function aborted(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}

export interface Target {
  /**
   * Delivers one item. Resolves soon after the signal is aborted, then with any answer. Reasons are clauses about the
   * target ("it answered 503") without secrets.
   */
  deliver(item: Message, signal: AbortSignal): Promise<TargetAnswer>;
  /** Delivers items as one. Only kinds with `batches` have it. */
  deliverBatch?(items: readonly Message[], signal: AbortSignal): Promise<TargetAnswer>;
  close(): Promise<void>;
}

export interface SinkContext {
  sinks: Sinks;
  log: Pick<NotificationLog, 'find' | 'body' | 'lastPosition'> & Pick<Cursors, 'cursor'>;
  activity: Pick<IntakeActivity, 'changes' | 'next'>;
  /** Microseconds since 1970, UTC. */
  nowUs: () => number;
  /** A number in [0, 1), for jitter. */
  random: () => number;
  /** Resolves after the delay, or soon after the signal is aborted; never rejects. Used for all delays. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  logger: Logger;
  run: RunProgram;
  /** URLs in messages. */
  urls: MessageUrls;
}

interface Connection {
  /** Settles when the connection has ended, for any reason. */
  closed(): Promise<unknown>;
  close(): Promise<void>;
}

/**
 * Opens the connection on demand, and again after a loss. Reconnecting by libraries is off: the sink's retry delays
 * apply.
 */
export function createConnection<Opened extends Connection>(
  open: (signal: AbortSignal) => Promise<Opened>,
) {
  let current: Promise<Opened> | null = null;
  const closing = new AbortController();
  return {
    current: (): Promise<Opened> => {
      if (current !== null) return current;
      const opening = open(closing.signal);
      current = opening;
      const clear = () => {
        if (current === opening) current = null;
      };
      opening.then((opened) => opened.closed()).then(clear, clear);
      return opening;
    },
    close: async () => {
      closing.abort();
      await current?.then(
        (opened) => opened.close(),
        () => undefined,
      );
    },
  };
}
