/** Connections to NATS servers, and the client library, which is imported with the first of them. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node';

/** The client library, imported with the first item: commands that deliver nothing start without it. */
export async function loadLibrary() {
  const [jetstream, transport] = await Promise.all([
    import('@nats-io/jetstream'),
    import('@nats-io/transport-node'),
  ]);
  return { ...jetstream, connect: transport.connect, errors: transport.errors };
}
export type Library = Awaited<ReturnType<typeof loadLibrary>>;

/** Opens when it is needed. The library's own way of connecting again is off: the sink's pauses govern that. */
export function createConnection(open: (signal: AbortSignal) => Promise<NatsConnection>) {
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
    current: (): Promise<NatsConnection> => {
      opening ??= start();
      return opening;
    },
    close: async () => {
      closing.abort();
      await opened?.close();
    },
  };
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
  { signal, connectNats }: { signal: AbortSignal; connectNats?: Library['connect'] },
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
    return await context.run(true, async () =>
      (connectNats ?? (await loadLibrary()).connect)(options),
    );
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
