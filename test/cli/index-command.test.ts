/** `earshot index`: how far the product index has got, and building it anew while notifications arrive. */
import { describe, expect, test } from 'vitest';
import { printed, printedJson } from './fake-io.ts';
import { type createContext, numbered, withStore } from './filled-store.ts';
import { createProductContext, guid, told } from './product-samples.ts';

const it = test.extend('context', () => createProductContext());

const shown = async ({ earshot }: ReturnType<typeof createContext>) =>
  await printedJson(earshot('index status --json'));

describe('index status', () => {
  it('tells how far the index has got, and what is in it', async ({ context }) => {
    await context.earshot('query products --count');
    expect(await shown(context)).toEqual({
      indexedPosition: 5,
      lastPosition: 5,
      behind: 0,
      products: 4,
      tombstones: 1,
      skipped: 0,
    });
    await context.fill([told({ id: guid('6'), name: 'S2C_NEW.SAFE' })]);
    expect(await shown(context)).toMatchObject({ behind: 1, products: 4 });
    const out = await printed(context.earshot('index status'));
    expect(out).toMatch(/^products +4\ntombstones +1\nindexed up to +5 of 6 \(1 behind; .*\)\n$/);
  });
});

describe('index rebuild', () => {
  it('builds the index anew from the log, with what has come meanwhile', async ({ context }) => {
    const rebuilt = await context.earshot('index rebuild --json');
    expect(rebuilt).toMatchObject({ code: 0, err: '' });
    expect(JSON.parse(rebuilt.out)).toMatchObject({ behind: 0, products: 4, tombstones: 1 });
    expect(await context.digits([])).toBe('4321');
  });

  it('shows its progress on a terminal only', async ({ context }) => {
    const { err } = await context.earshot('index rebuild', { isTTY: true, columns: 80 });
    expect(err).toMatch(/\rBuilding the index: 100 %\n$/);
    expect((await context.earshot('index rebuild')).err).toBe('');
  });

  it('lets notifications in, and answers from the old index, until it is done', async () => {
    const context = await createProductContext();
    await context.digits([]);
    await withStore(context.dataDir, async (store) => {
      const rebuilding = context.earshot('index rebuild');
      for (const each of numbered(1, 50)) await store.accept(each);
      expect((await rebuilding).code).toBe(0);
    });
    const counted = await context.earshot('query products --count');
    expect(counted.out).toBe('54\n');
  });

  it('ended by the user, leaves the old index as it was', async ({ context }) => {
    await context.digits([]);
    const before = await shown(context);
    const rebuilding = context.start('index rebuild');
    rebuilding.stop();
    const { code, out, err } = await rebuilding.ended;
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toBe('earshot: Interrupted. The old index is unchanged.\n');
    expect(await shown(context)).toEqual(before);
    expect(await context.digits([])).toBe('4321');
  });
});
