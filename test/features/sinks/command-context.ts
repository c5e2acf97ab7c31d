/** A data directory and an `earshot.config.ts` with sinks, and the commands run on both. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type FakeIoOptions, nowUs, type Words } from '../../helpers/fake-io.ts';
import { createContext, delivery, hourUs, withStore } from '../../helpers/filled-store.ts';

import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { acknowledged, queued } from './sink-items.ts';

/** Creates a context; `sinks` is the source text of the `sinks` object in the file. */
export function createSinkCommandContext(sinks: string) {
  const workingDir = temporaryDirectory();
  writeFileSync(
    join(workingDir, 'earshot.config.ts'),
    `export default { subscriptions: {}, sinks: ${sinks} };\n`,
  );
  const context = createContext();
  return {
    ...context,
    workingDir,
    earshot: (argv: Words, more: FakeIoOptions = {}) =>
      context.earshot(argv, { workingDir, ...more }),
    /** Stores a notification for each name, an hour apart, the last one an hour ago. */
    fillNames: (names: readonly string[]) =>
      context.fill(
        names.map((Name, i) =>
          delivery(
            { ProductId: `product-${i + 1}`, AckId: `ack-${i + 1}`, value: { Name } },
            { receivedAtUs: nowUs - (names.length - i) * hourUs },
          ),
        ),
      ),
  };
}

const two = `{ bus: { webhook: 'https://bus.example.org/hook' }, act: { command: ['act'] } }`;
export const refusal =
  'it answered 422: the column `cloud` does not exist in the table of products';

/** The sink `bus` accepted one of four notifications and refused two; one is queued. `act` has no state yet. */
export async function openRefusedContext() {
  const context = createSinkCommandContext(two);
  await context.fillNames(['S2A_1', 'S2A_2', 'S1A_3', 'S2B_4', 'S2B_5']);
  await withStore(context.dataDir, async (store) => {
    const atUs = nowUs - hourUs;
    const products = [1, 2, 3, 4].map((number) => `product-${number}`);
    const [first = expect.fail(), ...others] = await queued(store, products, {
      sink: 'bus',
      atUs,
      tooOld: 7,
    });
    const refused = others.slice(0, 2);
    await store.sinks.settle([acknowledged(first)], atUs);
    const dead = refused.map(({ id }) => ({ id, outcome: 'dead', error: refusal }) as const);
    await store.sinks.settle(dead, atUs);
  });
  const counts = async () => (await withStore(context.dataDir, ({ sinks }) => sinks.counts()))[0];
  return { ...context, counts };
}
