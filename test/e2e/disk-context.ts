/** The real program on a small disk, with a sink and summaries, under load; records its answers. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { expect } from 'vitest';
import { catchUpIndex } from '../../src/features/products/index-file/index-maintenance.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { numberedSample, recordOf } from '../features/products/product-samples.ts';
import { startHook } from '../features/sinks/hook-server.ts';
import { startInference } from '../features/summary/summary-context.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import {
  createClient,
  createReceiverContext,
  type SpawnedReceiver,
} from '../helpers/spawned-receiver.ts';
import { openStore } from '../helpers/store.ts';
import { mountSmallDisk } from './disk-small.ts';

const senders = 8;
/** Includes one connection for the probe. */
const connections = senders + 1;
/** Delay before a sender repeats a refused notification. */
const refusedPauseMs = 60;

export type DiskContext = Awaited<ReturnType<typeof openDiskContext>>;
export type Loaded = ReturnType<typeof underLoad>;

/** Opens a context with a sink that accepts everything, and an inference service that answers. */
export async function openDiskContext(mebibytes: number) {
  const disk = mountSmallDisk(mebibytes);
  const context = await createReceiverContext(disk.folder);
  const { dataDir } = context;
  const hook = await startHook();
  const sinks = { hook: { webhook: hook.url, from: 'start' } };
  const config = `export default ${JSON.stringify({ sinks })};\n`;
  writeFileSync(join(disk.folder, 'earshot.config.ts'), config);
  // Starts the summaries before the first product, so that it gets one, too.
  const store = await openStore({ dataDir });
  await store.moveCursor('summaries', 0, 0);
  await store.close();
  const { inference, env: modelEnv } = await startInference();
  const env = { ...modelEnv, EARSHOT_RECONCILE: 'off', EARSHOT_SUMMARY: 'each' };
  const catalogue: Catalogue = { created: 0, answered: [], unexpected: [] };
  const start = async (more: Record<string, string> = {}) => {
    const receiver = await context.start({ ...env, ...more });
    const { port } = receiver;
    return underLoad(receiver, catalogue, createClient({ port, ca: context.ca, connections }));
  };
  /** Returns the number of requests for summaries so far. */
  const asked = () => inference.totals().requests;
  const { answered, unexpected } = catalogue;
  return { disk, asked, dataDir, hook, answered, unexpected, start };
}

interface Catalogue {
  /** Number of created notifications. */
  created: number;
  /** AckIds of the notifications answered with 200. */
  answered: string[];
  /** Statuses other than 200 and 503. */
  unexpected: number[];
}

function underLoad(
  receiver: SpawnedReceiver,
  catalogue: Catalogue,
  send: ReturnType<typeof createClient>,
) {
  let [isSending, refused] = [false, 0];
  let sending: Promise<unknown> = Promise.resolve();
  const one = async () => {
    catalogue.created += 1;
    const number = catalogue.created;
    const body = bodyOf(number);
    while (isSending) {
      const { status } = await send('POST', '/notifications/all', body);
      if (status === 200) return void catalogue.answered.push(`ack-${number}`);
      if (status !== 503) catalogue.unexpected.push(status);
      refused += 1;
      await delay(refusedPauseMs);
    }
  };
  const sendRepeatedly = async () => {
    while (isSending) await one();
  };
  const stopLoad = async () => {
    isSending = false;
    await sending;
  };
  return {
    ...receiver,
    send,
    /** Starts senders that push as fast as they are answered, until `stopLoad` or the end. */
    startLoad: () => {
      isSending = true;
      // A connection that a kill breaks ends its sender.
      sending = Promise.allSettled(Array.from({ length: senders }, sendRepeatedly));
    },
    stopLoad,
    /** Returns the number of answers 503 so far. */
    refused: () => refused,
    /** Resolves with the exit code; null when it was killed. */
    end: async (signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> => {
      const [code] = await receiver.end(signal);
      await stopLoad();
      return code as number | null;
    },
  };
}

/** Fills a store with indexed products and closes it. */
export async function fillWithProducts(dataDir: string, count: number): Promise<void> {
  const nowUs = () => Date.now() * 1_000;
  const store = await openStore({ dataDir, diskReserveBytes: 0 });
  for (let at = 0; at < count; at += 1_000) {
    const numbers = Array.from({ length: Math.min(1_000, count - at) }, (_, i) => at + i);
    await Promise.all(
      numbers.map((number) =>
        store.accept(delivery(bodyOf(number, 300), { subscription: 'all', receivedAtUs: nowUs() })),
      ),
    );
  }
  await store.close();
  await catchUpIndex({ dataDir, diskReserveBytes: 0 });
}

/** Body about a product that can be summarized, with incompressible padding. */
function bodyOf(number: number, paddingBytes = 18_000): string {
  const sample = numberedSample(number);
  const fields = { ProductId: sample.id, ProductName: sample.name, value: recordOf(sample) };
  const padding = randomBytes(paddingBytes).toString('base64');
  return JSON.stringify(notification(number, { ...fields, padding }));
}

/** Returns the AckIds and the integrity of a database to which nobody writes. */
export function storedIn(dataDir: string) {
  const database = new Sqlite(join(dataDir, databaseFileName));
  try {
    const ackIds = database.prepare('SELECT ack_id FROM notification').pluck().all() as string[];
    return { ackIds, integrity: database.pragma('integrity_check', { simple: true }) };
  } finally {
    database.close();
  }
}

/** Checks that every answered notification is stored, and none twice. */
export function expectNothingLost({ dataDir, answered, unexpected }: DiskContext): void {
  expect(unexpected).toEqual([]);
  const { ackIds, integrity } = storedIn(dataDir);
  const stored = new Set(ackIds);
  expect(answered.filter((ackId) => !stored.has(ackId))).toEqual([]);
  expect(stored.size).toBe(ackIds.length);
  expect(integrity).toBe('ok');
}
