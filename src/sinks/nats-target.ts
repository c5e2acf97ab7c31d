/** Hands items over to a stream of NATS JetStream, with the project's own client library. */
import { type JetStreamClient, jetstream } from '@nats-io/jetstream';
import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node';
import type { SinkTarget } from '../domain/sinks.ts';
import { natsFault } from './nats-fault.ts';
import { subjectFor } from './nats-subject.ts';
import { type ConnectNats, openNats } from './open-nats.ts';
import type { Target } from './target.ts';

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
