/** `earshot admin index`: the state of the product index, and a rebuild while notifications arrive. */
import { describe, expect, test } from 'vitest';
import { expectEnd, expectRefusal, printed, printedJson } from '../../helpers/fake-io.ts';
import { type createContext, numbered, withStore } from '../../helpers/filled-store.ts';
import { createProductContext, deliveryOf, guid } from './product-samples.ts';

const it = test.extend('context', () => createProductContext());

const shown = async ({ earshot }: ReturnType<typeof createContext>) =>
  await printedJson(earshot('admin index status --json'));

describe('index status', () => {
  it('reports the position of the index, and its contents', async ({ context }) => {
    await context.earshot('query products --count');
    expect(await shown(context)).toEqual({
      indexedPosition: 5,
      lastPosition: 5,
      behind: 0,
      products: 4,
      tombstones: 1,
      skipped: 0,
    });
    await context.fill([deliveryOf({ id: guid('6'), name: 'S2C_NEW.SAFE' })]);
    expect(await shown(context)).toMatchObject({ behind: 1, products: 4 });
    const out = await printed(context.earshot('admin index status'));
    expect(out).toMatch(
      /^products +4\ntombstones +1\nindexed up to +position 5 of 6 \(1 position behind\)\n\n`earshot start` and .*\n$/,
    );
  });
});

describe('index rebuild', () => {
  it('accepts notifications, and answers from the old index until it is done', async ({
    context,
  }) => {
    await context.digits([]);
    await withStore(context.dataDir, async (store) => {
      const rebuilding = context.earshot('admin index rebuild --json');
      for (const each of numbered(1, 50)) await store.accept(each);
      const rebuilt = await printedJson(expectEnd(rebuilding, 0));
      expect(rebuilt).toMatchObject({ tombstones: 1 });
    });
    expect((await context.earshot('query products --count')).out).toBe('54\n');
    const { err } = await context.earshot('admin index rebuild', { isTTY: true, columns: 80 });
    expect(err).toMatch(/\rBuilding the index: 100 %\r +\r$/);
  });

  it('keeps the old index when the user stops it', async ({ context }) => {
    await context.digits([]);
    const before = await shown(context);
    const rebuilding = context.start('admin index rebuild');
    rebuilding.stop();
    const err = await expectRefusal(rebuilding.ended, 'The old index is unchanged.', 1);
    expect(err).toBe('earshot: Interrupted. The old index is unchanged.\n');
    expect(await shown(context)).toEqual(before);
    expect(await context.digits([])).toBe('4321');
  });
});
