/** A comparison may be cut at any moment, and pushes may come at any: the end is the same. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sumCounts } from '../../src/domain/coverage.ts';
import type { ReconcileTask } from '../../src/reconcile/tasks.ts';
import { type CatalogueProduct, openSetUp, type ReconcileSetUp, task } from './set-up.ts';

const kinds = ['created', 'modified', 'deleted'] as const;
const span = [0, 180] as const;

const tasksFor = (subscription: string): ReconcileTask[] =>
  kinds.map((event) => task(event, span, { subscription }));

/** What is left behind, without what differs from one subscription to the next by nature. */
async function leftBy(setUp: ReconcileSetUp, subscription: string) {
  const rows = await setUp.rows(subscription);
  const coverage = await setUp.coverage(subscription);
  return {
    rows: rows.map(({ event, productId, source, timesSeen }) => ({
      event,
      productId,
      source,
      timesSeen,
    })),
    coverage: coverage.map(({ subscription: _, ...rest }) => rest),
  };
}

class Cut extends Error {}

/** Runs until the given number of steps were done, and says whether that was before the end. */
async function runUntil(
  setUp: ReconcileSetUp,
  subscription: string,
  steps: number,
): Promise<boolean> {
  const stopping = new AbortController();
  const cut = new Cut('cut');
  let left = steps;
  setUp.onStep = (step) => {
    left -= 1;
    if (left >= 0) return;
    stopping.abort(cut);
    // A signal is looked at between steps; a kill spares none of them.
    if (step !== 'page') throw cut;
  };
  const running = setUp.run(tasksFor(subscription), { signal: stopping.signal });
  const error = await running.then(
    () => null,
    (reason: unknown) => reason,
  );
  setUp.onStep = () => undefined;
  if (error !== null) expect(error).toBe(cut);
  return error !== null;
}

it('ends the same wherever it was cut, once it is run again', async () => {
  const setUp = await openSetUp();
  setUp.held = [
    ...Array.from({ length: 5 }, (_, i) => ({
      id: `p${i}`,
      published: 30 * i,
      modified: 30 * i + 5,
    })),
    { id: 'gone', deleted: 30 },
    { id: 'lost', deleted: 90 },
  ];
  const told = { id: 'p3', published: 90, modified: 95 };
  const pushTo = (subscription: string) =>
    setUp.push({ event: 'created', product: told, received: 96, subscription });
  const cutsMax = 40;
  for (let i = 0; i < cutsMax; i += 1) await pushTo(`cut-${i}`);
  await pushTo('whole');
  await setUp.index();
  await setUp.run(tasksFor('whole'));
  const wanted = await leftBy(setUp, 'whole');
  expect(wanted.rows).toHaveLength(11);
  expect(wanted.coverage).toHaveLength(9);
  let cuts = 0;
  for (let isCut = true; isCut; cuts += 1) {
    const subscription = `cut-${cuts}`;
    isCut = await runUntil(setUp, subscription, cuts);
    // The clock stands still: what was compared before the cut is not compared again.
    await setUp.run(tasksFor(subscription), { resumeSinceUs: setUp.nowUs() });
    expect(await leftBy(setUp, subscription)).toEqual(wanted);
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
/** One thing after the other: a push of some product's event, or a comparison. */
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

/** Pushes of a product's events have their own AckId each; early ones come in time. */
async function tell(
  setUp: ReconcileSetUp,
  subscription: string,
  news: { product: Made; event: 'created' | 'modified'; early: boolean },
): Promise<void> {
  const { product, event, early } = news;
  if (event === 'modified' && product.modified === product.published) return;
  const received = early ? product.modified + 1 : 299;
  await setUp.push({ event, product, received, subscription, ackId: `${product.id} ${event}` });
}

it('has each event once, however pushes and comparisons follow each other', async () => {
  const setUp = await openSetUp();
  setUp.now = 300;
  let count = 0;
  await fc.assert(
    fc.asyncProperty(products, story, async (made, steps) => {
      count += 1;
      const subscription = `s${count}`;
      const tasks = tasksFor(subscription);
      const held = made.map((one) => ({ ...one, id: `${one.id}-${count}` }));
      setUp.held = held;
      for (const step of steps) {
        const product = held[typeof step === 'object' ? step.push % held.length : 0];
        if (product === undefined) continue;
        if (typeof step === 'object') await tell(setUp, subscription, { product, ...step });
        if (step === 'push while comparing') {
          const news = { product, event: 'created', early: true } as const;
          setUp.onStep = async (at) => {
            if (at === 'before recover') await tell(setUp, subscription, news);
          };
        }
        if (typeof step === 'string') await setUp.run(tasks);
        setUp.onStep = () => undefined;
      }
      const reports = await setUp.run(tasks);
      const rows = await setUp.rows(subscription);
      const keys = rows.map(({ event, productId }) => `${event} ${productId}`);
      expect(new Set(keys).size).toBe(keys.length);
      for (const { id } of held) expect(keys).toContain(`created ${id}`);
      expect(reports.map(({ missing }) => missing)).toEqual([0, 0, 0]);
      // The hours say the same as the whole, also after another comparison, which adds nothing.
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
