/** A real MQTT broker (mosquitto) on loopback, which tests stop, kill and restart, with a reader. */
import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectAsync } from 'mqtt';
import { onTestFinished } from 'vitest';
import { freePort } from '../../helpers/free-ports.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { env, spawnServer } from './spawned-server.ts';

/** From Debian's package `mosquitto`. */
export const hasMosquitto = spawnSync('mosquitto', ['-h'], { env }).error === undefined;

/** A message as a subscriber received it. */
export interface Received {
  topic: string;
  payload: string;
  contentType: string | undefined;
  id: unknown;
  isRetained: boolean;
}

interface MosquittoOptions {
  /** Users with their passwords; without them, everyone may connect. */
  users?: Readonly<Record<string, string>>;
  tls?: { key: string; cert: string; ca: string };
}

export async function startMosquitto(options: MosquittoOptions = {}) {
  const port = await freePort();
  const folder = temporaryDirectory();
  chmodSync(folder, 0o755);
  const { tls, users } = options;
  const lines = [
    `listener ${port} 127.0.0.1`,
    // Otherwise mosquitto changes to its own user, who has no access to the folder.
    `user ${process.getuid?.() === 0 ? 'root' : ''}`.trim(),
    `allow_anonymous ${users === undefined}`,
  ];
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  if (tls !== undefined) {
    lines.push(`certfile ${write('cert.pem', tls.cert)}`, `keyfile ${write('key.pem', tls.key)}`);
  }
  if (users !== undefined) {
    const entries = Object.entries(users).map(([user, password]) => `${user}:${password}\n`);
    const file = write('passwords', entries.join(''));
    spawnSync('mosquitto_passwd', ['-U', file], { env });
    lines.push(`password_file ${file}`);
  }
  const file = write('mosquitto.conf', `${lines.filter((line) => line !== 'user').join('\n')}\n`);
  const command = ['mosquitto', '-v', '-c', file];
  const server = await spawnServer(command, { port, answersWith: 'connect' });
  const url = tls === undefined ? `mqtt://127.0.0.1:${port}` : `mqtts://localhost:${port}`;
  return {
    ...{ ...server, url },
    /** Subscribes to all topics; returns what arrives from now on, after the retained messages. */
    subscribe: async (login: { username?: string; password?: string } = {}) => {
      const received: Received[] = [];
      const ca = tls === undefined ? {} : { ca: tls.ca };
      const client = await connectAsync(url, { protocolVersion: 5, ...login, ...ca });
      client.on('message', (topic, payload, { retain: isRetained, properties }) => {
        const { contentType, userProperties } = properties ?? {};
        const id = userProperties?.id;
        received.push({ topic, payload: payload.toString(), contentType, id, isRetained });
      });
      await client.subscribeAsync('#', { qos: 1, rap: true });
      onTestFinished(() => client.endAsync(true));
      return received;
    },
  };
}
