/**
 * A real receiver for one test: TLS on loopback, store in a temporary directory, removed
 * automatically.
 */

import { randomUUID } from 'node:crypto';
import { onTestFinished, test } from 'vitest';
import { type Listener, startListener } from '../../src/core/http/listener.ts';
import type { CredentialPair, Intake } from '../../src/core/terms/ports.ts';
import { createReceiverApp, type Outcome } from '../../src/receiver/app.ts';
import { createCredentialCheck } from '../../src/receiver/basic-auth.ts';
import { serve } from '../../src/receiver/serve.ts';
import type { Store } from '../../src/store/store.ts';
import { testIo } from '../helpers/fake-io.ts';
import { createKeyPair, writeKeyPair } from '../helpers/key-pair.ts';
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

export interface StubReceiver extends Endpoint {
  listener: Listener;
  log: LogLine[];
  outcomes: Outcome[];
}

/** Starts the receiver's app and listener with the test's own intake. */
export async function startReceiverWith(intake: Intake): Promise<StubReceiver> {
  const { caPem, keyPair } = await createKeyPair();
  const { log: logger, lines } = recordingLog();
  const outcomes: Outcome[] = [];
  const app = createReceiverApp({
    intake,
    checkCredentials: createCredentialCheck([goodPair]),
    log: logger,
    nowUs: () => 0,
    newRequestId: randomUUID,
    observe: (outcome) => outcomes.push(outcome),
  });
  const listener = await startListener({
    fetch: app.fetch,
    listen: { host: '127.0.0.1', port: 0 },
    answersHalfClosed: true,
    listenVariable: 'EARSHOT_LISTEN',
    keyPair,
  });
  onTestFinished(() => listener.close(0));
  return { port: listener.address.port, caPem, listener, log: lines, outcomes };
}
