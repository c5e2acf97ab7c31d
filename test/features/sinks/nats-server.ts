/** A real NATS server with JetStream on loopback, which tests stop, kill and restart. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { type ConnectionOptions, connect } from '@nats-io/transport-node';
import { freePort } from '../../helpers/free-ports.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { env, spawnServer } from './spawned-server.ts';

/** From Debian's package `nats-server`. */
export const hasNats = spawnSync('nats-server', ['--version'], { env }).status === 0;

export async function startNats(args: readonly string[] = [], login: ConnectionOptions = {}) {
  const port = await freePort();
  const folder = temporaryDirectory();
  const listen = ['-a', '127.0.0.1', '-p', `${port}`, '-js', '-sd', join(folder, 'js')];
  const command = ['nats-server', ...listen, ...args];
  const { signal, ...server } = await spawnServer(command, { port, answersWith: 'data' });
  const withClient = async <Result>(work: (client: Client) => Promise<Result>) => {
    const connection = await connect({ servers: [`127.0.0.1:${port}`], ...login });
    try {
      return await work({
        manager: await jetstreamManager(connection),
        streams: jetstream(connection).streams,
      });
    } finally {
      await connection.close();
    }
  };
  return {
    ...{ ...server, server: `nats://127.0.0.1:${port}` },
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    addStream: (subjects: string[], config: Partial<{ max_msg_size: number }> = {}) =>
      withClient(({ manager }) => manager.streams.add({ name: 'PRODUCTS', subjects, ...config })),
    /** Messages in the stream, in order. */
    messages: () =>
      withClient(async ({ manager, streams }) => {
        const { state } = await manager.streams.info('PRODUCTS');
        const stream = await streams.get('PRODUCTS');
        const kept = [];
        for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq += 1) {
          const message = await stream.getMessage({ seq });
          if (message === null) continue;
          const id = message.header.get('Nats-Msg-Id');
          const contentType = message.header.get('content-type');
          kept.push({
            ...{ subject: message.subject, id, contentType },
            data: JSON.parse(message.string()),
          });
        }
        return kept;
      }),
  };
}

interface Client {
  manager: Awaited<ReturnType<typeof jetstreamManager>>;
  streams: ReturnType<typeof jetstream>['streams'];
}
