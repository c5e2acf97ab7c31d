/**
 * A real receiver for one test: TLS on loopback, store in a temporary directory, removed
 * automatically.
 */

import { onTestFinished, test } from 'vitest';
import type { CredentialPair } from '../../src/core/terms/ports.ts';
import { serve } from '../../src/receiver/serve.ts';
import type { Store } from '../../src/store/store.ts';
import { testIo } from '../helpers/fake-io.ts';
import { writeKeyPair } from '../helpers/key-pair.ts';
import { type LogLine, recordingLog } from '../helpers/recording-log.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { serveConfig } from './serve-config.ts';

export const goodPair: CredentialPair = { username: 'catalogue', password: 'open sesame!' };

/** Address and trusted root of a receiver. */
export interface Endpoint {
  port: number;
  caPem: string;
}

export interface TestReceiver extends Endpoint {
  store: Store;
  log: LogLine[];
  /** The receiver's own clock, microseconds; a test may move it. */
  clock: { us: number };
  /** Stops it before the test has finished. */
  close(): Promise<void>;
}

/** Starts the receiver as the command line composes it. */
export async function startReceiver(
  credentials: CredentialPair[] = [goodPair],
  { trustedProxies = [] }: { trustedProxies?: string[] } = {},
): Promise<TestReceiver> {
  const dataDir = temporaryDirectory();
  const { caPem, files } = await writeKeyPair(dataDir);
  const clock = { us: Date.UTC(2026, 4, 1, 12) * 1_000 };
  const { log: logger, lines } = recordingLog();
  const config = serveConfig({
    ...{ dataDir, trustedProxies, tls: { kind: 'files', ...files } },
    credentials: { source: 'variables', pairs: credentials },
  });
  const io = testIo({ nowUs: () => clock.us, random: Math.random });
  const running = await serve(config, logger, io);
  onTestFinished(() => running.close());
  const port = Number(new URL(running.url ?? '').port);
  return { port, caPem, store: running.store, log: lines, clock, close: running.close };
}

/** A test with its own receiver, started on first use. */
export const it = test.extend('receiver', () => startReceiver());
