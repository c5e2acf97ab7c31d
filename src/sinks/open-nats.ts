/** Connects to NATS with the project's client library, and leaves no socket behind where that fails. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import { type ConnectionOptions, connect, type NatsConnection } from '@nats-io/transport-node';

export type ConnectNats = (options: ConnectionOptions) => Promise<NatsConnection>;

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
  { signal, connectNats = connect }: { signal: AbortSignal; connectNats?: ConnectNats | undefined },
): Promise<NatsConnection> {
  const context = new AsyncLocalStorage<true>();
  const sockets: Socket[] = [];
  const leave = () => {
    for (const socket of sockets) socket.destroy();
  };
  const note = (message: unknown) => {
    // Those of the whole process are told of here.
    if (context.getStore() !== true || !isAboutSocket(message)) return;
    sockets.push(message.socket);
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

function isAboutSocket(message: unknown): message is { socket: Socket } {
  return (
    typeof message === 'object' &&
    message !== null &&
    'socket' in message &&
    message.socket instanceof Socket
  );
}
