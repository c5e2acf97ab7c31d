/** An unknown name of a subscription, sink or body is wrong usage, and the nearest names are suggested. */
import { expect, it } from 'vitest';
import { registration } from '../../features/alerts/watch-context.ts';
import { filledContext, numbered, withStore } from '../../helpers/filled-store.ts';

it.each([
  ['query --subscription sea-icee', 'sea-ice'],
  ['query summaries --subscription sea-icee', 'sea-ice'],
  ['subscriptions history sea-icee', 'sea-ice'],
  ['coverage --subscription sea-icee', 'sea-ice'],
  ['filter explain --subscription sea-icee', 'sea-ice'],
  ['sinks dead bsu', 'bus'],
  ['quarantine show 99', null],
])('%s exits with 2', async (line, nearest) => {
  const context = await filledContext(numbered(1, 2));
  await withStore(context.dataDir, async ({ administration, sinks }) => {
    await administration.commit({ save: registration({ name: 'sea-ice' }) });
    const from = { sink: 'bus', replayId: null, after: 0, upTo: 1 };
    await sinks.enqueue({ ...from, items: [{ position: 1, productId: 'p' }], atUs: 0 });
  });
  const { code, out, err } = await context.earshot(line);
  expect({ code, out }, err).toEqual({ code: 2, out: '' });
  if (nearest !== null)
    expect(err).toMatch(new RegExp(`Did you mean ${nearest}\\?|: ${nearest}\\b`));
});
