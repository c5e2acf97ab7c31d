/** A real NATS server with JetStream on loopback, which tests stop, kill and restart. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { type ConnectionOptions, connect } from '@nats-io/transport-node';
import { onTestFinished } from 'vitest';
import { freePort } from '../../helpers/free-ports.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

/** From Debian's package `nats-server`. */
export const hasNats = spawnSync('nats-server', ['--version']).status === 0;

export async function startNats(args: readonly string[] = [], login: ConnectionOptions = {}) {
  const port = await freePort();
  const folder = temporaryDirectory();
  let child: ChildProcess;
  const start = async () => {
    const fixed = ['-a', '127.0.0.1', '-p', `${port}`, '-js', '-sd', join(folder, 'js')];
    child = spawn('nats-server', [...fixed, ...args], { stdio: 'ignore' });
    while (!(await isListening(port))) await delay(10);
  };
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  };
  await start();
  onTestFinished(() => kill());
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
    port,
    server: `nats://127.0.0.1:${port}`,
    start,
    kill,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
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

async function isListening(port: number): Promise<boolean> {
  const socket = connectSocket(port, '127.0.0.1');
  try {
    await once(socket, 'data');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
