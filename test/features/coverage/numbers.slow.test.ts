/** Coverage has one definition: all views show the same numbers, on the first day and after a recovery. */
import { expect, it } from 'vitest';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../../src/features/products/index-file/products.ts';
import { readCoverage as coverageFacts } from '../../../src/features/subscriptions/status.ts';
import { openConsole } from '../../core/api/console-context.ts';
import { expectEnd, printedJson } from '../../helpers/fake-io.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { hourUs, nowUs, openReconcileContext, type ReconcileContext } from './reconcile-context.ts';

/** The subscription began at 2026-05-02T10:40Z, in the middle of its first hour. */
const beganUs = nowUs - (100 / 60) * hourUs;

/** Half of all pushes are lost. The catalogue has 20 products an hour; some are modified or deleted. */
async function openFirstDay(atUs = beganUs) {
  const past = { durationMs: 86_400_000, productsPerDay: 480 };
  const context = await openReconcileContext({ past, count: 0 });
  await context.register('alps', { atUs });
  const published = await context.catalogueProducts();
  const pushed = published.filter(
    ({ PublicationDate }, i) => Date.parse(PublicationDate) * 1_000 >= atUs && i % 2 === 0,
  );
  await context.push('alps', pushed);
  await catchUpIndex({ dataDir: context.dataDir });
  return context;
}

const counted = ['expected', 'pushed', 'late', 'recovered', 'missing'] as const;
type Counts = Record<(typeof counted)[number], number>;

const sumOf = (rows: readonly Counts[]): Counts =>
  Object.fromEntries(
    counted.map((key) => [key, rows.reduce((sum, row) => sum + row[key], 0)]),
  ) as Counts;

/** Returns the coverage that each view shows. */
async function views({ run, dataDir, withStore }: ReconcileContext, more: object = {}) {
  const text = await run('coverage', { env: { ...more } });
  const json = await printedJson(run('coverage --json', { env: { ...more } }));
  const env = {
    ...{ EARSHOT_TLS: 'off', EARSHOT_LISTEN: `127.0.0.1:${await freePort()}` },
    ...{ EARSHOT_ENDPOINT_USERNAME: 'catalogue', EARSHOT_ENDPOINT_PASSWORD: 'a:long-secret' },
  };
  const status = await printedJson(run('status --json', { env }));
  const api = await withStore(async (store) => {
    const products = openProducts(dataDir);
    const { completeness } = store;
    const { get } = await openConsole({ completeness, products, nowUs: () => nowUs });
    const answer = (await get('/api/coverage')).json;
    const facts = await coverageFacts(store, nowUs);
    await products.close();
    return { answer, facts };
  });
  return { text, json, status, ...api };
}

/** Expects these counts in every view. */
async function expectEverywhere(context: ReconcileContext, counts: Counts) {
  const { text, json, status, answer, facts } = await views(context);
  const row = counted.map((key) => counts[key]).join(' +');
  expect(text.out).toMatch(new RegExp(`\nalps +${row} `));
  expect(answer).toEqual(json);
  for (const [one] of [json.subscriptions, status.coverage, facts]) {
    expect(one).toMatchObject(counts);
  }
  expect(counts.expected).toBe(
    sumOf([counts]).pushed + counts.late + counts.recovered + counts.missing,
  );
}

it('before the first comparison no view claims that nothing is missing; each names the time of the first comparison', async () => {
  const context = await openFirstDay(nowUs - hourUs / 6);
  const { text, json, status, answer } = await views(context);
  expect(text.code).toBe(0);
  expect(text.out).toMatch(/\nalps +- +- +- +- +- +0 of 0 h +-\n/);
  expect(text.out).toContain('the first is compared at 2026-05-02 13:30 UTC.\n');
  // There is nothing that the command could count.
  expect(text.out).not.toMatch(/earshot reconcile|none missing|100 %/);
  expect(json.comparison).toEqual({ automatic: true, reason: null });
  expect(json.subscriptions).toMatchObject([
    {
      ...{ state: 'not-compared', complete: null, pushedShare: null },
      ...{ comparedHours: 0, unknownHours: 0, pendingHours: 1 },
      nextComparison: '2026-05-02T13:30:00.000000Z',
    },
  ]);
  expect(answer).toEqual(json);
  expect(status.coverage).toMatchObject([{ state: 'not-compared', complete: null }]);

  // The same applies after a command compared only the time before the subscription.
  const earlier = /^Recovered \d{3} missing events\. Expected: \d events\./;
  await expectEnd(context.run('reconcile --since 24h'), 0, earlier);
  const later = await views(context);
  expect(later.json.subscriptions[0]).toMatchObject({ state: 'not-compared', expected: 0 });
  expect(later.text.out).toContain('no full hour was compared yet');
  expect(later.text.out).not.toMatch(/none missing|100 %/);
});

it.each([
  ['EARSHOT_RECONCILE', 'EARSHOT_RECONCILE is off.'],
  ['EARSHOT_INDEX', 'EARSHOT_INDEX is off, but a comparison needs the product index.'],
])(
  'before the first comparison names %s as the reason, and the command once an hour is due',
  async (name, reason) => {
    const env = { [name]: 'off', earshot_called_as: './earshot' };
    const { text, json } = await views(await openFirstDay(), env);
    expect(text.out).toContain(`alps: not compared: ${reason} To compare now: \`./earshot rec`);
    expect(json.comparison).toEqual({ automatic: false, reason });
    expect(json.subscriptions[0]).toMatchObject({ nextComparison: null });
  },
);

/** Time limit for several commands, each with its own store and index. */
const slow = { timeout: 60_000 };

it('the first hours have the same counts in each view, and in reconcile', slow, async () => {
  const context = await openFirstDay();
  const window = '--since 2026-05-02T10:00Z --until 2026-05-02T12:00Z';
  const reconcile = async (flags: string) => {
    const { counts, fetched } = await printedJson(context.run(`reconcile ${flags} --json`));
    return { counts: sumOf(counts), fetched };
  };
  const { counts: before } = await reconcile(`${window} --check`);
  expect(before.missing).toBeGreaterThan(3);
  await expectEverywhere(context, before);

  // Recover half of the missing events first.
  const half = await reconcile(window.replace('10:00Z', '11:00Z'));
  expect(half.fetched).toBeGreaterThan(0);
  const after = { ...before, recovered: before.missing, missing: 0 };
  const whole = await reconcile(window);
  expect(whole.counts).toEqual(after);
  // The first hour has events from before the subscription, too.
  expect(whole.fetched).toBeGreaterThan(before.missing - half.fetched);
  expect(await reconcile(window)).toEqual({ counts: after, fetched: 0 });
  await expectEverywhere(context, after);
});
