/** `earshot start` as a process of its own, for tests that need to stop it or to measure it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import { openStoreReader, type StoreReader } from '../../src/store/store.ts';
import { exchange } from './raw-client.ts';
import { createKeyPair, type Endpoint, goodPair, temporaryDirectory } from './running-receiver.ts';

const script = fileURLToPath(new URL('../../scripts/earshot.js', import.meta.url));

export interface StartedProgram extends Endpoint {
  signal(name: NodeJS.Signals): void;
  /** Resolves with the exit code; null when a signal ended it. */
  exited: Promise<number | null>;
  stderr(): string;
  /** Memory that is resident now, as the kernel counts it; null where it does not tell. */
  residentBytes(): Promise<number | null>;
  /** Looks into its store from outside; closed when the test is over. */
  openStore(): StoreReader;
}

/** Resolves when it answers the probe. Killed when the test is over. `nodeOptions` go before the script. */
export async function startProgram(nodeOptions: string[] = []): Promise<StartedProgram> {
  const directory = await temporaryDirectory();
  const { caPem, keyPair } = await createKeyPair();
  const inDirectory = (name: string) => join(directory, name);
  await writeFile(inDirectory('cert.pem'), keyPair.cert);
  await writeFile(inDirectory('key.pem'), keyPair.key);
  const child = spawn(process.execPath, [...nodeOptions, script, 'start'], {
    cwd: directory,
    stdio: ['ignore', 'inherit', 'pipe'],
    env: {
      EARSHOT_LISTEN: '127.0.0.1:0',
      EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
      EARSHOT_DATA_DIR: inDirectory('data'),
      EARSHOT_ENDPOINT_USERNAME: goodPair.username,
      EARSHOT_ENDPOINT_PASSWORD: goodPair.password,
      EARSHOT_TLS_CERT: inDirectory('cert.pem'),
      EARSHOT_TLS_KEY: inDirectory('key.pem'),
    },
  });
  const exited = once(child, 'exit').then(([code]) => code);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const readyLine = () => /"url":"https:\/\/127\.0\.0\.1:(\d+)"/.exec(stderr)?.[1];
  await expect.poll(readyLine, { timeout: 10_000 }).toBeDefined();
  const port = Number(readyLine());
  expect((await exchange({ port, caPem }, { method: 'GET' })).status).toBe(200);
  return {
    port,
    caPem,
    exited,
    signal: (name) => void child.kill(name),
    stderr: () => stderr,
    residentBytes: async () => {
      if (process.platform !== 'linux') return null;
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
    },
    openStore: () => {
      const store = openStoreReader(inDirectory('data'));
      onTestFinished(() => store.close());
      return store;
    },
  };
}
