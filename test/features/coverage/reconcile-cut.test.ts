/** A comparison may be aborted and pushes may arrive at any time: the result is the same. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sumCounts } from '../../../src/features/coverage/coverage.ts';
import type { ReconcileTask } from '../../../src/features/coverage/tasks.ts';
import { type CatalogueProduct, openSetUp, type ReconcileSetUp, task } from './set-up.ts';

const kinds = ['created', 'modified', 'deleted'] as const;
const span = [0, 180] as const;

const tasksFor = (subscription: string): ReconcileTask[] =>
  kinds.map((event) => task(event, span, { subscription }));

/** The resulting rows and coverage, without fields that differ between subscriptions. */
async function resultOf(setUp: ReconcileSetUp, subscription: string) {
  const rows = await setUp.rows(subscription);
  const coverage = await setUp.coverage(subscription);
  return {
    rows: rows.map(({ event, productId, source, timesSeen }) => {
      return { event, productId, source, timesSeen };
    }),
    coverage: coverage.map(({ subscription: _, ...rest }) => rest),
  };
}

/** Aborts a run after this number of steps. Returns false if it was complete before. */
async function runUntil(
  setUp: ReconcileSetUp,
  subscription: string,
  steps: number,
): Promise<boolean> {
  const stopping = new AbortController();
  const cut = new Error('cut');
  let left = steps;
  setUp.onStep = (step) => {
    left -= 1;
    if (left >= 0) return;
    stopping.abort(cut);
    // The signal is checked between steps; a kill can hit any step.
    if (step !== 'page') throw cut;
  };
  const running = setUp.run(tasksFor(subscription), { signal: stopping.signal });
  const end = await running.catch((reason: unknown) => reason);
  setUp.onStep = () => undefined;
  if (end instanceof Error) expect(end).toBe(cut);
  return end === cut;
}

it('has the same result wherever it was aborted, once it is run again', async () => {
  const setUp = await openSetUp();
  setUp.catalogue = [
    ...[0, 30, 60, 90, 120].map((published, i) => ({
      ...{ id: `p${i}`, published, modified: published + 5 },
    })),
    { id: 'gone', deleted: 30 },
    { id: 'lost', deleted: 90 },
  ];
  const pushed = { id: 'p3', published: 90, modified: 95 };
  const pushTo = (subscription: string) =>
    setUp.push({ event: 'created', product: pushed, received: 96, subscription });
  const cutsMax = 40;
  for (let i = 0; i < cutsMax; i += 1) await pushTo(`cut-${i}`);
  await pushTo('whole');
  await setUp.index();
  await setUp.run(tasksFor('whole'));
  const expected = await resultOf(setUp, 'whole');
  expect(expected.rows).toHaveLength(11);
  expect(expected.coverage).toHaveLength(9);
  let cuts = 0;
  for (let isCut = true; isCut; cuts += 1) {
    const subscription = `cut-${cuts}`;
    isCut = await runUntil(setUp, subscription, cuts);
    await setUp.run(tasksFor(subscription));
    expect(await resultOf(setUp, subscription)).toEqual(expected);
  }
  expect(cuts).toBeGreaterThan(15);
  expect(cuts).toBeLessThan(cutsMax);
});

interface Made extends CatalogueProduct {
  published: number;
  modified: number;
}

const products = fc.uniqueArray(
  fc.tuple(fc.nat(9), fc.nat(179), fc.constantFrom(0, 1, 40)).map(([n, published, later]): Made => {
    return { id: `p${n}`, published, modified: published + later };
  }),
  { selector: ({ id }) => id, minLength: 1, maxLength: 8 },
);
/** A sequence of steps: a push of a product's event, or a comparison. */
const story = fc.array(
  fc.oneof(
    fc.record({
      push: fc.nat(7),
      event: fc.constantFrom('created' as const, 'modified' as const),
      early: fc.boolean(),
    }),
    fc.constant('compare' as const),
    fc.constant('push while comparing' as const),
  ),
  { maxLength: 8 },
);

/** Pushes a product's event with an AckId of its own; early ones arrive in time. */
async function pushEvent(
  setUp: ReconcileSetUp,
  subscription: string,
  created: { product: Made; event: 'created' | 'modified'; early: boolean },
): Promise<void> {
  const { product, event, early } = created;
  if (event === 'modified' && product.modified === product.published) return;
  const received = early ? product.modified + 1 : 299;
  await setUp.push({ event, product, received, subscription, ackId: `${product.id} ${event}` });
}

it('stores each event once, for any sequence of pushes and comparisons', async () => {
  const setUp = await openSetUp();
  setUp.now = 300;
  let count = 0;
  await fc.assert(
    fc.asyncProperty(products, story, async (made, steps) => {
      count += 1;
      const subscription = `s${count}`;
      const tasks = tasksFor(subscription);
      const catalogue = made.map((one) => ({ ...one, id: `${one.id}-${count}` }));
      setUp.catalogue = catalogue;
      for (const step of steps) {
        const product = catalogue[typeof step === 'object' ? step.push % catalogue.length : 0];
        if (product === undefined) continue;
        if (typeof step === 'object') await pushEvent(setUp, subscription, { product, ...step });
        if (step === 'push while comparing') {
          const created = { product, event: 'created', early: true } as const;
          setUp.onStep = async (at) => {
            if (at === 'before recover') await pushEvent(setUp, subscription, created);
          };
        }
        if (typeof step === 'string') await setUp.run(tasks);
        setUp.onStep = () => undefined;
      }
      const reports = await setUp.run(tasks);
      const rows = await setUp.rows(subscription);
      const keys = rows.map(({ event, productId }) => `${event} ${productId}`);
      expect(new Set(keys).size).toBe(keys.length);
      for (const { id } of catalogue) expect(keys).toContain(`created ${id}`);
      expect(reports.map(({ missing }) => missing)).toEqual([0, 0, 0]);
      // The hours add up to the totals, even after another comparison, which adds nothing.
      const coverage = await setUp.coverage(subscription);
      for (const [i, event] of kinds.entries()) {
        expect(reports[i]).toMatchObject(
          sumCounts(coverage.filter((hour) => hour.event === event)),
        );
      }
      expect(await setUp.run(tasks)).toEqual(reports);
      expect(await setUp.rows(subscription)).toEqual(rows);
      expect(await setUp.coverage(subscription)).toEqual(coverage);
    }),
    { numRuns: 12 },
  );
});
