/** Connections to NATS servers. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node';

/** Imports the client library with the first item, so that other commands start without it. */
export async function loadLibrary() {
  const [jetstream, transport] = await Promise.all([
    import('@nats-io/jetstream'),
    import('@nats-io/transport-node'),
  ]);
  const { connect, errors, headers } = transport;
  return { ...jetstream, connect, errors, headers };
}
export type Library = Awaited<ReturnType<typeof loadLibrary>>;

/** Diagnostics channel to which Node publishes each opened socket, as `{ socket }`. */
const socketOpened = 'net.client.socket';

/**
 * Connects to a server, and closes the sockets of a failed attempt. If a server accepts the connection but never
 * responds, the library times out and leaves its socket open (transport-node 3.4.0), which would prevent the process
 * from exiting. Rejects with the signal's reason when it is aborted, otherwise with the library's error.
 */
export async function openNats(
  options: ConnectionOptions,
  { signal, connectNats }: { signal: AbortSignal; connectNats?: Library['connect'] },
): Promise<NatsConnection> {
  const context = new AsyncLocalStorage<true>();
  const sockets: Socket[] = [];
  const destroyAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const onSocket = (message: unknown) => {
    // The channel reports the sockets of the whole process.
    const { socket } = message as { socket?: unknown };
    if (context.getStore() !== true || !(socket instanceof Socket)) return;
    sockets.push(socket);
    if (signal.aborted) destroyAll();
  };
  subscribe(socketOpened, onSocket);
  signal.addEventListener('abort', destroyAll);
  try {
    return await context.run(true, async () =>
      (connectNats ?? (await loadLibrary()).connect)(options),
    );
  } catch (error) {
    destroyAll();
    // The library's error does not say why its socket was closed.
    signal.throwIfAborted();
    throw error;
  } finally {
    unsubscribe(socketOpened, onSocket);
    signal.removeEventListener('abort', destroyAll);
  }
}
