/** Delivers items to a stream of NATS JetStream, with the project's own client library. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import {
  JetStreamApiError,
  type JetStreamClient,
  jetstream,
  jetstreamManager,
} from '@nats-io/jetstream';
import {
  type ConnectionOptions,
  connect,
  errors,
  type NatsConnection,
} from '@nats-io/transport-node';
import type { SinkTargetOf } from '../domain/sinks.ts';
import { subscriptionEvents } from '../domain/subscription.ts';
import { networkFault } from '../http/bounded-fetch.ts';
import { foreignText, hintCharactersMax } from '../http/foreign-text.ts';
import type { SinkDocument } from './document.ts';
import { type CheckContext, type KindOfSink, type TargetAnswer, unavailable } from './target.ts';

type NatsTarget = SinkTargetOf<'nats'>;
type TargetFinding = Awaited<ReturnType<KindOfSink<'nats'>['check']>>;

const connectTimeoutMs = 10_000;

/** Two that are not answered, and the connection counts as broken. */
const pingIntervalMs = 15_000;

/**
 * Publishes each document to the subject, with its id as message id: the stream leaves out what it has seen
 * within its duplicate window. The stream acknowledges it. The connection is made with the first item, and with
 * the next one after it was lost.
 */
export const nats: KindOfSink<'nats'> = {
  open: (target, { name, timeoutMs }) => {
    const connection = createConnection((signal) =>
      openNats(connectionOptions(target, name), { signal }),
    );
    return {
      deliver: async (item, signal) => {
        const subject = subjectFor(target.subject, item);
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
          return natsFault(error, target, subject);
        }
      },
      close: connection.close,
    };
  },
  check: async (target, context) => {
    let connection: NatsConnection;
    try {
      const { definition, signal } = context;
      connection = await openNats(connectionOptions(target, definition.name), { signal });
    } catch (error) {
      const answer = natsFault(error, target);
      const reason = 'reason' in answer ? answer.reason : 'it closed';
      return {
        state: 'fail',
        message: `${target.servers.join(', ')} cannot be used: ${reason}.`,
        advice:
          'Start it, or correct servers and login in earshot.config.ts. What comes meanwhile waits.',
      };
    }
    try {
      const found = await checkStreams(connection, target, context);
      if (found.state !== 'pass' || !isInTheClear(target)) return found;
      return {
        state: 'warn',
        message: `${found.message} The login and what is handed over can be read on the way: nats:// is without TLS.`,
        advice: 'Switch TLS on at the server, and name it with tls:// in earshot.config.ts.',
      };
    } finally {
      await connection.close();
    }
  },
};

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
function connectionOptions(
  { servers, credentials, ca }: NatsTarget,
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
function natsFault(
  error: unknown,
  { credentials, subject: template }: NatsTarget,
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
    return unavailable(reason);
  }
  if (has(errors.TimeoutError)) return unavailable('it did not answer in time');
  if (has(errors.RequestError)) return unavailable('the connection broke');
  return unavailable(networkFault(error));
}

function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  for (let next = error; next instanceof Error && causes.length < 8; next = next.cause) {
    causes.push(next);
  }
  return causes;
}

/** What comes from outside must neither add a token nor be a wildcard. */
function subjectFor(
  template: string,
  { event, subscription }: Pick<SinkDocument, 'event' | 'subscription'>,
): string {
  const token = (text: string) => text.replaceAll(/[^a-z0-9-]/gi, '_') || '_';
  return template
    .replaceAll('{event}', () => token(event))
    .replaceAll('{subscription}', () => token(subscription ?? '_'));
}

/** The subject, with wildcards, that covers all that the sink may publish to: such as `earshot.*.*`. */
function coveringSubject(template: string): string {
  // A wildcard stands for a whole token (docs.nats.io, Subjects).
  return template
    .split('.')
    .map((token) => (token.includes('{') ? '*' : token))
    .join('.');
}

/** Whether a login goes to another machine without TLS, or does so when somebody on the way wants it. */
function isInTheClear({ servers, credentials }: NatsTarget): boolean {
  const here = /^nats:\/\/(localhost|127\.[\d.]+|\[::1\])(:\d+)?$/i;
  return (
    credentials.kind !== 'none' &&
    servers.some((server) => !server.startsWith('tls:') && !here.test(server))
  );
}

async function checkStreams(
  connection: NatsConnection,
  { subject: template }: NatsTarget,
  context: CheckContext,
): Promise<TargetFinding> {
  const subjects = subjectsOf(template, context);
  try {
    const { streams } = await jetstreamManager(connection, { checkAPI: false });
    for (const subject of subjects) {
      if ((await streams.names(subject).next()).length > 0) continue;
      return {
        state: 'fail',
        message: `No stream listens to the subject ${subject}.`,
        advice: streamAdvice(template),
      };
    }
    return { state: 'pass', message: `A stream listens to ${subjects.join(', ')}.` };
  } catch (error) {
    if (isWithoutJetStream(error)) {
      return {
        state: 'fail',
        message: 'The server has no JetStream for this user.',
        advice: 'Switch it on: nats-server -js, or jetstream {} in its configuration.',
      };
    }
    // Who may publish need not be allowed to ask.
    return {
      state: 'warn',
      message: 'The server takes the login, but does not say whether a stream listens.',
      advice:
        'Nothing, if this user may do no more than publish. `earshot sinks list` shows what waits.',
    };
  }
}

/** Of two streams, NATS lets none listen to what the other one does: one that listens to a part is changed. */
function streamAdvice(template: string): string {
  const covering = coveringSubject(template);
  const one = `Make one: nats stream add PRODUCTS --subjects '${covering}' --defaults`;
  if (covering === template) return one;
  return `${one}. Where a stream listens to a part of these, change that one: nats stream edit.`;
}

function isWithoutJetStream(error: unknown): boolean {
  if (error instanceof errors.NoRespondersError) return true;
  if (error instanceof JetStreamApiError) return error.status === 503;
  return error instanceof Error && error.cause !== undefined && isWithoutJetStream(error.cause);
}

/** Every subject that an item of the sink may get. */
function subjectsOf(template: string, { definition, subscriptions }: CheckContext): string[] {
  const usual = subscriptions.length > 0 ? subscriptions : ['default'];
  const named = definition.subscriptions.length > 0 ? definition.subscriptions : usual;
  const events = definition.events.length > 0 ? definition.events : subscriptionEvents;
  const all = events.flatMap((event) =>
    named.map((subscription) => subjectFor(template, { event, subscription })),
  );
  return [...new Set(all)];
}

/** Node tells it of each socket that it opens, with `{ socket }`. */
const socketOpened = 'net.client.socket';

/**
 * A server that takes the connection and says nothing, as one that hangs does, is given up by the library when its
 * time is up; but the socket stays open (transport-node 3.4.0), and would keep the program from ending. So those
 * are closed here that are opened meanwhile on the library's behalf. Ends early when the signal is
 * aborted, and rejects with its reason; with the library's error else.
 */
export async function openNats(
  options: ConnectionOptions,
  { signal, connectNats = connect }: { signal: AbortSignal; connectNats?: typeof connect },
): Promise<NatsConnection> {
  const context = new AsyncLocalStorage<true>();
  const sockets: Socket[] = [];
  const leave = () => {
    for (const socket of sockets) socket.destroy();
  };
  const note = (message: unknown) => {
    // The channel reports the sockets of the whole process.
    const { socket } = message as { socket?: unknown };
    if (context.getStore() !== true || !(socket instanceof Socket)) return;
    sockets.push(socket);
    if (signal.aborted) leave();
  };
  subscribe(socketOpened, note);
  signal.addEventListener('abort', leave);
  try {
    return await context.run(true, () => connectNats(options));
  } catch (error) {
    leave();
    // That of the library says nothing of why its socket was closed.
    signal.throwIfAborted();
    throw error;
  } finally {
    unsubscribe(socketOpened, note);
    signal.removeEventListener('abort', leave);
  }
}
