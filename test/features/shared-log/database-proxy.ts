/** A proxy in front of a database that cuts connections at chosen moments. */
import { connect } from 'node:net';
import { startTcpServer } from '../../helpers/tcp-server.ts';

export async function startDatabaseProxy(target: number) {
  let watched: string | null = null;
  let cuts = 0;
  let isStopped = false;
  const { port, sockets } = await startTcpServer((client) => {
    if (isStopped) return void client.destroy();
    const database = connect(target, '127.0.0.1');
    let isCut = false;
    client.on('close', () => database.destroy());
    database.on('error', () => undefined).on('close', () => client.destroy());
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
      client.destroy();
    });
  });
  return {
    port,
    /** Cuts the connection before the first answer after a request that contains the text. */
    cutReplyTo: (text: string) => {
      watched = text;
    },
    /** Number of cut connections. */
    cuts: () => cuts,
    /** Cuts all connections, and refuses new ones until `resume`. */
    stop: () => {
      isStopped = true;
      for (const socket of sockets) socket.destroy();
    },
    resume: () => {
      isStopped = false;
    },
  };
}
