/** A catalogue account without anything of an endpoint: no public URL, certificate, credentials or open port. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { credentialsFileName } from '../../../src/core/config/endpoint-credentials.ts';
import {
  expectEnd,
  type FakeIoOptions,
  type Running,
  startCommand,
  type Words,
} from '../../helpers/fake-io.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { openReader } from '../../store/sqlite-store.ts';
import { openAccountContext } from '../subscriptions/account-context.ts';

const ofEndpoint = ['PUBLIC_URL', 'LISTEN', 'TLS_CERT', 'TLS_KEY', 'PROBE_CA'];

/** Opens the account; `start` runs the receiver in this process. Everything is stopped when the test has finished. */
export async function openPullAccount() {
  const context = await openAccountContext();
  const { env, dataDir, folder, receiver, sandbox, run } = context;
  await receiver.close();
  for (const name of ofEndpoint) delete env[`EARSHOT_${name}`];
  rmSync(join(dataDir, credentialsFileName));
  env.EARSHOT_CONSOLE_LISTEN = `127.0.0.1:${await freePort()}`;
  const nowUs = () => Math.trunc(sandbox.clock.now()) * 1_000;
  const begin = (argv: Words, options: FakeIoOptions = {}): Running => {
    const { env: more = {}, ...rest } = options;
    const running = startCommand(argv, {
      nowUs,
      workingDir: folder,
      ...rest,
      env: { ...env, ...more },
    });
    onTestFinished(async () => {
      running.stop();
      await running.ended;
    });
    return running;
  };
  return {
    ...context,
    consoleUrl: `http://${env.EARSHOT_CONSOLE_LISTEN}`,
    begin,
    /** Starts the receiver, and waits until it reads queues. */
    start: async (more: Record<string, string> = {}): Promise<Running> => {
      const running = begin('start', { env: more });
      await expect.poll(running.err).toContain('ready to read queues');
      return running;
    },
    /** Registers a pull subscription to all products, by default without a queue that is read. */
    register: () => expectEnd(run(['register', '--pull', '--filter', '', '--yes']), 0),
    /** Opens the data directory for queries. */
    reader: () => openReader(dataDir),
  };
}
