/** Hands items over to a stream of NATS JetStream, with the project's own client library. */
import { JetStreamApiError, type JetStreamClient, jetstream } from '@nats-io/jetstream';
import { type ConnectionOptions, errors, type NatsConnection } from '@nats-io/transport-node';
import type { SinkTarget } from '../domain/sinks.ts';
import { networkFault } from '../http/bounded-fetch.ts';
import { foreignText, hintCharactersMax } from '../http/foreign-text.ts';
import type { HandOver } from './document.ts';
import { type ConnectNats, openNats } from './open-nats.ts';
import type { Target, TargetAnswer } from './sink.ts';

type NatsSink = Extract<SinkTarget, { kind: 'nats' }>;

const connectTimeoutMs = 10_000;

/** Two that are not answered, and the connection counts as broken. */
const pingIntervalMs = 15_000;

/**
 * Publishes each document to the subject, with its id as message id: the stream leaves out what it has seen
 * within its duplicate window. Taken is what the stream has acknowledged. The connection is made with the first
 * item, and with the next one after it was lost.
 */
export function createNatsTarget(
  sink: NatsSink,
  options: { name: string; timeoutMs: number; connectNats?: ConnectNats | undefined },
): Target {
  const { name, timeoutMs, connectNats } = options;
  const connection = createConnection((signal) =>
    openNats(connectionOptions(sink, name), { signal, connectNats }),
  );
  return {
    handOver: async (item, signal) => {
      const subject = subjectFor(sink.subject, item);
      // Outside of the `try`: a document that cannot be written is no fault of the server.
      const document = JSON.stringify(item);
      const publish = async () => {
        const stream = await connection.client();
        // The signal comes first: its reason says more than that of the library.
        const timeout = timeoutMs + connectTimeoutMs;
        await stream.publish(subject, document, { msgID: item.id, timeout });
      };
      try {
        await Promise.race([publish(), aborted(signal)]);
        return { kind: 'taken' };
      } catch (error) {
        return natsFault(error, sink, subject);
      }
    },
    close: connection.close,
  };
}

/** Opens when it is needed. The library's own way of connecting again is off: the sink's pauses govern that. */
function createConnection(open: (signal: AbortSignal) => Promise<NatsConnection>) {
  let opening: Promise<NatsConnection> | null = null;
  let opened: NatsConnection | null = null;
  const closing = new AbortController();

  const start = async () => {
    try {
      const connection = await open(closing.signal);
      if (closing.signal.aborted) await connection.close();
      opened = connection;
      void connection.closed().then(forget, forget);
      return connection;
    } catch (error) {
      forget();
      throw error;
    }
  };
  const forget = () => {
    opening = null;
    opened = null;
  };
  return {
    client: async (): Promise<JetStreamClient> => {
      opening ??= start();
      return jetstream(await opening);
    },
    close: async () => {
      closing.abort();
      await opened?.close();
    },
  };
}

/** How a sink connects; `name` is shown by the server's own tools. */
export function connectionOptions(
  { servers, credentials, ca }: NatsSink,
  name: string,
): ConnectionOptions {
  const isTls = servers.some((server) => server.startsWith('tls:'));
  return {
    servers: [...servers],
    name: `earshot ${name}`,
    reconnect: false,
    timeout: connectTimeoutMs,
    pingInterval: pingIntervalMs,
    noAsyncTraces: true,
    ...(isTls ? { tls: ca === null ? {} : { ca } } : {}),
    ...(credentials.kind === 'user' && { user: credentials.user, pass: credentials.password }),
    ...(credentials.kind === 'token' && { token: credentials.token }),
  };
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** `JSStreamMessageExceedsMaximumErr` of nats-server's errors.json. */
const messageTooLarge = 10_054;

/** Never quotes credentials, which the server's words may hold. `subject` is what was published to. */
export function natsFault(
  error: unknown,
  { credentials, subject: template }: Extract<SinkTarget, { kind: 'nats' }>,
  subject = template,
): TargetAnswer {
  const causes = causesOf(error);
  const has = (...kinds: (abstract new (...args: never) => Error)[]) =>
    causes.some((cause) => kinds.some((kind) => cause instanceof kind));
  if (has(errors.NoRespondersError)) {
    const reason = `no stream listens to the subject ${subject}: make one that listens to ${coveringSubject(template)} (nats stream add)`;
    return { kind: 'misconfigured', reason };
  }
  if (has(errors.AuthorizationError, errors.UserAuthenticationExpiredError)) {
    return { kind: 'misconfigured', reason: 'it does not accept the credentials' };
  }
  if (has(errors.PermissionViolationError)) {
    const reason = 'it does not permit this user to publish to the subject, or to read the answer';
    return { kind: 'misconfigured', reason };
  }
  if (has(errors.InvalidArgumentError)) {
    return { kind: 'refused', reason: 'it is larger than the server takes (max_payload)' };
  }
  const answered = causes.find((cause) => cause instanceof JetStreamApiError);
  if (answered !== undefined) {
    const secrets = Object.values(credentials);
    const words = foreignText(answered.message, { secrets, charactersMax: hintCharactersMax });
    const reason = `the stream answered ${answered.code}: ${words}`;
    if (answered.code === messageTooLarge) return { kind: 'refused', reason };
    return { kind: 'unavailable', reason, retryAfterMs: null };
  }
  return { kind: 'unavailable', reason: wordsOf(error, causes), retryAfterMs: null };
}

function wordsOf(error: unknown, causes: readonly Error[]): string {
  if (causes.some((cause) => cause instanceof errors.TimeoutError))
    return 'it did not answer in time';
  if (causes.some((cause) => cause instanceof errors.RequestError)) return 'the connection broke';
  return networkFault(error);
}

function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  for (let next = error; next instanceof Error && causes.length < 8; next = next.cause) {
    causes.push(next);
  }
  return causes;
}

/** What comes from outside must neither add a token nor be a wildcard. */
export function subjectFor(
  template: string,
  { event, subscription }: Pick<HandOver, 'event' | 'subscription'>,
): string {
  const token = (text: string) => text.replaceAll(/[^a-z0-9-]/gi, '_') || '_';
  return template
    .replaceAll('{event}', () => token(event))
    .replaceAll('{subscription}', () => token(subscription ?? '_'));
}

/** The subject, with wildcards, that covers all that the sink may publish to: such as `earshot.*.*`. */
export function coveringSubject(template: string): string {
  // A wildcard stands for a whole token (docs.nats.io, Subjects).
  return template
    .split('.')
    .map((token) => (token.includes('{') ? '*' : token))
    .join('.');
}
