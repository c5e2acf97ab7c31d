/** A proxy in front of a database that cuts connections at chosen moments. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface DatabaseProxy {
  port: number;
  /** Cuts the connection before the first answer after a request that contains the text. */
  cutReplyTo(text: string): void;
  /** Number of cut connections. */
  cuts(): number;
  /** Cuts all connections, and refuses new ones until `resume`. */
  stop(): void;
  resume(): void;
}

export async function startDatabaseProxy(target: number): Promise<DatabaseProxy> {
  const sockets = new Set<Socket>();
  let watched: string | null = null;
  let cuts = 0;
  let isStopped = false;
  const server = createServer((client) => {
    if (isStopped) return void client.destroy();
    const database = connect(target, '127.0.0.1');
    let isCut = false;
    const end = () => {
      client.destroy();
      database.destroy();
    };
    for (const socket of [client, database]) {
      sockets.add(socket);
      socket.on('error', end).on('close', () => {
        sockets.delete(socket);
        end();
      });
    }
    client.on('data', (bytes) => {
      if (watched !== null && bytes.includes(watched)) {
        watched = null;
        isCut = true;
      }
      database.write(bytes);
    });
    database.on('data', (bytes) => {
      if (!isCut) return void client.write(bytes);
      cuts += 1;
      end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = () => {
    isStopped = true;
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    stop();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port.');
  return {
    port: address.port,
    cutReplyTo: (text) => {
      watched = text;
    },
    cuts: () => cuts,
    stop,
    resume: () => {
      isStopped = false;
    },
  };
}
