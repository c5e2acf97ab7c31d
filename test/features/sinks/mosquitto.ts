/** A real MQTT broker (mosquitto) on loopback, which tests stop, kill and restart, with a reader. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connectAsync, type IPublishPacket } from 'mqtt';
import { onTestFinished } from 'vitest';
import { freePort } from '../../helpers/free-ports.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

/** From Debian's package `mosquitto`. Debian's folder for services is not in every PATH. */
const path = `${process.env.PATH}:/usr/sbin`;
export const hasMosquitto =
  spawnSync('mosquitto', ['-h'], { env: { PATH: path } }).error === undefined;

/** A message as a subscriber received it. */
export interface Received {
  topic: string;
  payload: string;
  contentType: string | undefined;
  id: unknown;
  isRetained: boolean;
}

interface MosquittoOptions {
  /** Lines of its configuration. `FOLDER` stands for its folder. */
  config?: readonly string[];
  /** Files in its folder. */
  files?: Readonly<Record<string, string>>;
  /** Users with their passwords; without them, everyone may connect. */
  users?: Readonly<Record<string, string>>;
  tls?: { key: string; cert: string; ca: string };
}

export async function startMosquitto(options: MosquittoOptions = {}) {
  const port = await freePort();
  const folder = temporaryDirectory();
  chmodSync(folder, 0o755);
  const { tls, users, files = {}, config = [] } = options;
  const lines = [
    `listener ${port} 127.0.0.1`,
    // Otherwise mosquitto changes to its own user, who has no access to the folder.
    `user ${process.getuid?.() === 0 ? 'root' : ''}`.trim(),
    `allow_anonymous ${users === undefined}`,
    ...config.map((line) => line.replaceAll('FOLDER', folder)),
  ];
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  for (const [name, text] of Object.entries(files)) write(name, text);
  if (tls !== undefined) {
    lines.push(`certfile ${write('cert.pem', tls.cert)}`, `keyfile ${write('key.pem', tls.key)}`);
  }
  if (users !== undefined) {
    const entries = Object.entries(users).map(([user, password]) => `${user}:${password}\n`);
    const file = write('passwords', entries.join(''));
    spawnSync('mosquitto_passwd', ['-U', file], { env: { PATH: path } });
    lines.push(`password_file ${file}`);
  }
  const file = write('mosquitto.conf', `${lines.filter((line) => line !== 'user').join('\n')}\n`);
  let log = '';
  let child: ChildProcess;
  const start = async () => {
    const stdio = ['ignore', 'ignore', 'pipe'] as const;
    child = spawn('mosquitto', ['-v', '-c', file], { stdio: [...stdio], env: { PATH: path } });
    child.stderr?.on('data', (chunk: Buffer) => {
      log += chunk.toString();
    });
    while (!(await isListening(port))) {
      if (child.exitCode !== null) throw new Error(`mosquitto ended: ${child.exitCode}`);
      await delay(5);
    }
  };
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  };
  await start();
  onTestFinished(() => kill());
  const url = tls === undefined ? `mqtt://127.0.0.1:${port}` : `mqtts://localhost:${port}`;
  return {
    port,
    url,
    folder,
    log: () => log,
    start,
    kill,
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    /** Writes sessions and subscriptions to disk (`persistence true`). */
    save: () => void child.kill('SIGUSR1'),
    /** Subscribes to all topics; returns what arrives from now on, after the retained messages. */
    subscribe: async (login: { username?: string; password?: string } = {}) => {
      const received: Received[] = [];
      const ca = tls === undefined ? {} : { ca: tls.ca };
      const client = await connectAsync(url, { protocolVersion: 5, ...login, ...ca });
      client.on('message', (topic, payload, packet) =>
        received.push(toReceived(topic, payload, packet)),
      );
      await client.subscribeAsync('#', { qos: 1, rap: true });
      onTestFinished(() => client.endAsync(true));
      return received;
    },
  };
}

export function toReceived(
  topic: string,
  payload: Buffer,
  { retain, properties }: IPublishPacket,
): Received {
  return {
    topic,
    payload: payload.toString(),
    contentType: properties?.contentType,
    id: properties?.userProperties?.id,
    isRetained: retain,
  };
}

async function isListening(port: number): Promise<boolean> {
  const socket = connectSocket(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
