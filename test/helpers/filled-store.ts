/** A temporary data directory, and notifications to fill it with. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Delivery, Receipt } from '../../src/core/terms/ports.ts';
import type { Store } from '../../src/store/store.ts';
import { delivery as deliveryOf, notification } from './deliveries.ts';
import {
  type FakeIoOptions,
  nowUs,
  runCommand,
  startCommand,
  type Words,
  wordsOf,
} from './fake-io.ts';
import { openStore } from './store.ts';

export const hourUs = 3_600_000_000;
export const subscriptionId = '6f1f7f9a-1a0c-4a52-8c0a-5d6f0c1b2a3d';

/** A delivery with one notification; fields set to undefined are omitted from the body. */
export function delivery(
  fields: Record<string, unknown> = {},
  about: Partial<Omit<Delivery, 'body'>> = {},
): Delivery {
  const usual = { ProductName: 'S2A_ONE.SAFE', NotificationDate: '2026-05-02T09:00:00.5Z' };
  const own = { SubscriptionId: subscriptionId, value: {}, ...usual, ...fields };
  return rawDelivery(JSON.stringify(notification(1, own)), about);
}

/** A delivery with any body. */
export const rawDelivery = (
  body: string | Uint8Array,
  about: Partial<Omit<Delivery, 'body'>> = {},
): Delivery =>
  deliveryOf(body, {
    ...{ subscription: 'sea-ice', receivedAtUs: nowUs - hourUs, headers: [] },
    ...about,
  });

/** Deliveries of different products with the AckIds ack-<from> … ack-<to>. */
export function numbered(from: number, to: number): Delivery[] {
  return Array.from({ length: to - from + 1 }, (_, i) =>
    delivery({ AckId: `ack-${from + i}`, ProductId: `product-${from + i}` }),
  );
}

/** A data directory, by default removed at the end of the test, and the commands run on it. */
export function createContext(atEnd: (cleanUp: () => void) => void = onTestFinished) {
  const dataDir = mkdtempSync(join(tmpdir(), 'earshot-cli-'));
  atEnd(() => rmSync(dataDir, { recursive: true }));
  const options = ({ env = {}, ...rest }: FakeIoOptions): FakeIoOptions => ({
    ...rest,
    env: { EARSHOT_DATA_DIR: dataDir, ...env },
  });
  return {
    dataDir,
    /** Opens the store, accepts the deliveries one after the other, closes it. */
    fill: (deliveries: readonly Delivery[]) => fill(dataDir, deliveries),
    earshot: (argv: Words, more: FakeIoOptions = {}) => runCommand(argv, options(more)),
    start: (argv: Words, more: FakeIoOptions = {}) => startCommand(argv, options(more)),
    /** The rows that a command prints as JSON lines. */
    async rows(argv: Words): Promise<Record<string, unknown>[]> {
      const { code, out, err } = await runCommand(
        [...wordsOf(argv), '--output', 'ndjson'],
        options({}),
      );
      if (code !== 0) throw new Error(`exit code ${code}: ${err}`);
      return out
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line));
    },
    /** The positions of these rows, in their order. */
    async positions(argv: Words): Promise<unknown[]> {
      return (await this.rows(argv)).map(({ position }) => position);
    },
  };
}

/** A context whose log contains these deliveries. */
export async function filledContext(deliveries: readonly Delivery[] = []) {
  const context = createContext();
  await context.fill(deliveries);
  return context;
}

/** Runs `use` with an open store, and closes the store in any case. */
export async function withStore<Result>(
  dataDir: string,
  use: (store: Store) => Promise<Result>,
): Promise<Result> {
  const store = await openStore({ dataDir });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

function fill(dataDir: string, deliveries: readonly Delivery[]): Promise<Receipt[]> {
  return withStore(dataDir, async (store) => {
    const receipts: Receipt[] = [];
    for (const each of deliveries) receipts.push(await store.accept(each));
    return receipts;
  });
}

/** Writes the `earshot.config.ts` of a folder. */
export function writeSubscriptions({ folder }: { folder: string }, subscriptions: object): void {
  const text = `export default ${JSON.stringify({ subscriptions })};\n`;
  writeFileSync(join(folder, 'earshot.config.ts'), text);
}
