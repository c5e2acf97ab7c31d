/** `earshot start` as a separate process, for tests that stop it or measure it. */
import { readFile } from 'node:fs/promises';
import { onTestFinished } from 'vitest';
import type { StoreReader } from '../../src/store/store.ts';
import { createReceiverContext } from '../helpers/spawned-receiver.ts';
import { openStoreReader } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { type Endpoint, goodPair } from './running-receiver.ts';

export interface StartedProgram extends Endpoint {
  signal(name: NodeJS.Signals): void;
  /** Resolves with the exit code; null when a signal ended it. */
  exited: Promise<number | null>;
  stderr(): string;
  /** Resident memory according to the kernel; null where it is unknown. */
  residentBytes(): Promise<number | null>;
  /** Opens its store from outside; closed when the test has finished. */
  openStore(): StoreReader;
}

/** Resolves when it accepts notifications. Killed when the test has finished. */
export async function startProgram(): Promise<StartedProgram> {
  const { ca, dataDir, start } = await createReceiverContext(temporaryDirectory());
  const { username, password } = goodPair;
  const pair = { EARSHOT_ENDPOINT_USERNAME: username, EARSHOT_ENDPOINT_PASSWORD: password };
  const { child, exit, pid, port, log } = await start(pair);
  return {
    port,
    caPem: ca,
    exited: exit.then(([code]) => code as number | null),
    signal: (name) => void child.kill(name),
    stderr: log,
    residentBytes: async () => {
      if (process.platform !== 'linux') return null;
      const status = await readFile(`/proc/${pid}/status`, 'utf8');
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
    },
    openStore: () => {
      const store = openStoreReader(dataDir);
      onTestFinished(() => store.close());
      return store;
    },
  };
}
