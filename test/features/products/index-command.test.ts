/** `earshot admin index`: the state of the product index, and a rebuild while notifications arrive. */
import { describe, expect, test } from 'vitest';
import { printed, printedJson } from '../../helpers/fake-io.ts';
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
  it('rebuilds the index from the log, with notifications that arrive meanwhile', async ({
    context,
  }) => {
    const rebuilt = await context.earshot('admin index rebuild --json');
    expect(rebuilt).toMatchObject({ code: 0, err: '' });
    expect(JSON.parse(rebuilt.out)).toMatchObject({ behind: 0, products: 4, tombstones: 1 });
    expect(await context.digits([])).toBe('4321');
  });

  it('shows progress on a terminal only', async ({ context }) => {
    const { err } = await context.earshot('admin index rebuild', { isTTY: true, columns: 80 });
    expect(err).toMatch(/\rBuilding the index: 100 %\r +\r$/);
    expect((await context.earshot('admin index rebuild')).err).toBe('');
  });

  it('accepts notifications and answers from the old index until it is done', async () => {
    const context = await createProductContext();
    await context.digits([]);
    await withStore(context.dataDir, async (store) => {
      const rebuilding = context.earshot('admin index rebuild');
      for (const each of numbered(1, 50)) await store.accept(each);
      expect((await rebuilding).code).toBe(0);
    });
    const counted = await context.earshot('query products --count');
    expect(counted.out).toBe('54\n');
  });

  it('keeps the old index when the user stops it', async ({ context }) => {
    await context.digits([]);
    const before = await shown(context);
    const rebuilding = context.start('admin index rebuild');
    rebuilding.stop();
    const { code, out, err } = await rebuilding.ended;
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toBe('earshot: Interrupted. The old index is unchanged.\n');
    expect(await shown(context)).toEqual(before);
    expect(await context.digits([])).toBe('4321');
  });
});
