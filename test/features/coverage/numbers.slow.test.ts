/** Coverage has one definition: all views show the same numbers, on the first day and after a recovery. */
import { describe, expect, it } from 'vitest';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../../src/features/products/index-file/products.ts';
import { coverageFacts } from '../../../src/features/status/read-status.ts';
import { openConsole } from '../../core/api/console-context.ts';
import { expectEnd, type FakeIoOptions, printedJson } from '../../helpers/fake-io.ts';
import { freePort } from '../../helpers/free-ports.ts';
import {
  compareAutomatically,
  hourUs,
  nowUs,
  openReconcileContext,
  type ReconcileContext,
} from './reconcile-context.ts';

/** The subscription began at 2026-05-02T10:40Z, in the middle of its first hour. */
const beganUs = nowUs - (100 / 60) * hourUs;
const firstHour = '2026-05-02T10:00:00.000000Z';

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

const countsOf = (row: Counts): Counts =>
  Object.fromEntries(counted.map((key) => [key, row[key]])) as Counts;

/** The rows of the first printed table, keyed by its column titles. */
function printedCounts(out: string, name: string): Counts[] {
  const table = out.split('\n\n').find((part) => part.startsWith('subscription'));
  const [titles = '', ...rows] = table?.split('\n') ?? [];
  const at = titles.trim().split(/ +/);
  return rows
    .filter((row) => row.startsWith(`${name} `))
    .map((row) => {
      const cells = row.trim().split(/ {2,}/);
      return Object.fromEntries(
        counted.map((key) => [key, Number(cells[at.indexOf(key)])]),
      ) as Counts;
    });
}

const sumOf = (rows: readonly Counts[]): Counts =>
  Object.fromEntries(
    counted.map((key) => [key, rows.reduce((sum, row) => sum + row[key], 0)]),
  ) as Counts;

/** Returns the coverage that each view shows. */
async function views({ run, dataDir, withStore }: ReconcileContext, options: FakeIoOptions = {}) {
  const text = await run('coverage', options);
  const json = await printedJson(run('coverage --json', options));
  const env = {
    ...{ EARSHOT_TLS: 'off', EARSHOT_LISTEN: `127.0.0.1:${await freePort()}` },
    ...{ EARSHOT_ENDPOINT_USERNAME: 'catalogue', EARSHOT_ENDPOINT_PASSWORD: 'a:long-secret' },
    ...options.env,
  };
  const status = await run('status', { ...options, env });
  const statusJson = await printedJson(run('status --json', { ...options, env }));
  const api = await withStore(async (store) => {
    const products = openProducts(dataDir);
    const now = options.nowUs ?? (() => nowUs);
    const { completeness } = store;
    const { get } = await openConsole({ completeness, products, nowUs: now });
    const answer = (await get('/api/coverage')).json;
    const facts = await coverageFacts(store, now());
    await products.close();
    return { answer, facts };
  });
  return { text, json, status, statusJson, ...api };
}

type Views = Awaited<ReturnType<typeof views>>;

function expectSameNumbers({ text, json, statusJson, answer, facts }: Views, counts: Counts) {
  expect(printedCounts(text.out, 'alps')).toEqual([counts]);
  for (const [one] of [json.subscriptions, statusJson.coverage, answer.subscriptions, facts]) {
    expect(countsOf(one)).toEqual(counts);
  }
  const { pushed, late, recovered } = counts;
  expect(counts.missing).toBe(counts.expected - pushed - late - recovered);
}

const partOf = (out: string, name: string) =>
  out
    .split(/\n(?=.{3}\w)/)
    .find((line) => line.slice(3).startsWith(name))
    ?.replaceAll(/\s+/g, ' ');

describe('before the first comparison', () => {
  it('no view claims that nothing is missing; each names the time of the first comparison', async () => {
    const context = await openFirstDay(nowUs - hourUs / 6);
    const seen = await views(context);
    expect(seen.text.code).toBe(0);
    expect(seen.text.out).toMatch(/\nalps +- +- +- +- +- +0 of 0 h +-\n/);
    expect(seen.text.out).toContain(
      '\nalps: no full hour was compared yet; the first is compared at 2026-05-02 13:30 UTC.\n',
    );
    for (const document of [seen.json, seen.answer]) {
      expect(document.comparison).toEqual({ automatic: true, reason: null });
      expect(document.subscriptions).toMatchObject([
        {
          ...{ state: 'not-compared', complete: null, pushedShare: null },
          ...{ comparedHours: 0, unknownHours: 0, pendingHours: 1 },
          nextComparison: '2026-05-02T13:30:00.000000Z',
        },
      ]);
    }
    expect(seen.statusJson.coverage).toMatchObject([{ state: 'not-compared', complete: null }]);
    const part = partOf(seen.status.out, 'coverage');
    expect(part).toContain(
      'no full hour was compared yet; the first is due at 2026-05-02 13:30 UTC, but automatic comparison is off: The receiver is not running',
    );
    // There is nothing that the command could count.
    for (const text of [part, seen.text.out]) expect(text).not.toContain('earshot reconcile');
    for (const { out } of [seen.text, seen.status]) expect(out).not.toMatch(/none missing|100 %/);
  });

  it('status offers the command once an hour is due', async () => {
    const context = await openFirstDay();
    const { status } = await views(context);
    expect(partOf(status.out, 'coverage')).toContain(
      'not compared: The receiver is not running Next: Run `earshot reconcile` to compare now.',
    );
  });

  it('the same applies after a command compared only the time before the subscription', async () => {
    const context = await openFirstDay(nowUs - hourUs / 6);
    const { out, err } = await expectEnd(context.run('reconcile --since 24h'), 0);
    const own = sumOf(printedCounts(out, 'alps'));
    expect(own.expected).toBeGreaterThan(0);
    expect(own.expected).toBeLessThan(10);
    expect(err).toMatch(
      /Older than the subscription, so not expected: \d{3} events, \d{3} fetched, 0 not in the log\./,
    );
    const seen = await views(context);
    expect(seen.json.subscriptions[0]).toMatchObject({ state: 'not-compared', expected: 0 });
    for (const { out: text } of [seen.text, seen.status]) {
      expect(text.replaceAll(/\s+/g, ' ')).toContain('no full hour was compared yet;');
      // The command has just compared the first hour up to now.
      expect(text).not.toMatch(/not compared yet|first comparison|none missing|100 %/);
    }
  });

  it.each([
    ['EARSHOT_RECONCILE', 'EARSHOT_RECONCILE is off.'],
    ['EARSHOT_INDEX', 'EARSHOT_INDEX is off, but a comparison needs the product index.'],
  ])('names %s as the reason', async (variable, reason) => {
    const context = await openFirstDay();
    const env = { [variable]: 'off' };
    const text = await context.run('coverage', { env });
    expect(text.out).toContain(
      `\nalps: not compared: ${reason} To compare now: \`earshot reconcile\`.\n`,
    );
    const byPath = { ...env, earshot_called_as: './earshot' };
    const called = await context.run('coverage', { env: byPath });
    expect(called.out).toContain('To compare now: `./earshot reconcile`.');
    const document = await printedJson(context.run('coverage --json', { env }));
    expect(document.comparison).toEqual({ automatic: false, reason });
    expect(document.subscriptions[0]).toMatchObject({ nextComparison: null });
  });
});

/** Time limit for seven commands, each with its own store and index. */
const slow = { timeout: 60_000 };

describe('the first hours', () => {
  const firstHourOf = async ({ run }: ReconcileContext): Promise<Counts> => {
    const [one] = (await printedJson(run('coverage --json'))).subscriptions;
    return countsOf(one.hours.find(({ hour }: { hour: string }) => hour === firstHour));
  };

  it(
    'have the same expected events before, during and after a recovery of the day before',
    slow,
    async () => {
      const context = await openFirstDay();
      expect(await compareAutomatically(context)).toBe('all');
      const first = await firstHourOf(context);
      expect(first.expected).toBeGreaterThan(3);
      expect(first.recovered).toBeGreaterThan(0);
      expect(first.missing).toBe(0);
      // A window that ends when the subscription begins, one that contains that moment, and a count only.
      await context.run('reconcile --since 24h --until 2026-05-02T10:40Z');
      expect(await firstHourOf(context)).toEqual(first);
      await context.run('reconcile --since 24h');
      expect(await firstHourOf(context)).toEqual(first);
      await context.run('reconcile --since 24h --check');
      expect(await firstHourOf(context)).toEqual(first);
      // Compare again a day later.
      expect(await compareAutomatically(context, nowUs + 25 * hourUs)).toBe('all');
      expect(await firstHourOf(context)).toEqual(first);
    },
  );

  it('begin with the first event pushed after the registration', slow, async () => {
    const context = await openReconcileContext({ modifiedShare: 0, deletedShare: 0 });
    const published = await context.catalogueProducts();
    const first = published.findIndex(
      ({ PublicationDate }) => PublicationDate > '2026-05-02T10:30',
    );
    const own = published.slice(first);
    // A push follows the publication by about 47 s: the first product published after the registration.
    const [{ PublicationDate: publishedAt } = published[0] as (typeof published)[0]] = own;
    await context.register('alps', { atUs: Date.parse(publishedAt) * 1_000 + 47_000_000 });
    await context.push('alps', own.slice(0, -1));
    await catchUpIndex({ dataDir: context.dataDir });
    const { out, err } = await context.run('reconcile --since 24h');
    const counts = sumOf(printedCounts(out, 'alps'));
    const pushed = own.length - 1;
    expect(counts).toEqual({
      ...{ expected: own.length, late: 0, missing: 0 },
      ...{ pushed, recovered: 1 },
    });
    expect(err).toContain(`Recovered 1 missing event. Expected: ${own.length} events.`);
    expect(err).toMatch(/Older than the subscription, so not expected: (\d+) events, \1 fetched/);
  });

  it(
    'have the same counts in each view, and as table, text and JSON of reconcile',
    slow,
    async () => {
      const context = await openFirstDay();
      const window = ['--since', '2026-05-02T10:00Z', '--until', '2026-05-02T12:00Z'];
      const checked = await expectEnd(context.run(['reconcile', ...window, '--check']), 3);
      const before = sumOf(printedCounts(checked.out, 'alps'));
      expect(before.missing).toBeGreaterThan(3);
      expect(checked.err).toContain(`earshot: ${before.missing} events are missing.`);
      expectSameNumbers(await views(context), before);

      // Recover half of the missing events first.
      const half = ['--since', '2026-05-02T11:00Z', '--until', '2026-05-02T12:00Z'];
      const some = await context.run(['reconcile', ...half, '--json']);
      const recovered = JSON.parse(some.out).fetched;
      expect(recovered).toBeGreaterThan(0);
      const after = await context.run(['reconcile', ...window]);
      const counts = sumOf(printedCounts(after.out, 'alps'));
      expect(counts).toEqual({ ...before, recovered: before.missing, missing: 0 });
      const now = before.missing - recovered;
      expect(after.err).toContain(
        `Recovered ${now} missing events. Expected: ${before.expected} events.`,
      );
      expect(after.err).not.toMatch(/are missing/);
      const document = await printedJson(context.run(['reconcile', ...window, '--json']));
      expect(sumOf(document.counts)).toEqual(counts);
      expect(document.fetched).toBe(0);
      const seen = await views(context);
      expectSameNumbers(seen, counts);
      expect(seen.text.out).toMatch(/ 2 of 2 h +100 %\n/);
      expect(partOf(seen.status.out, 'coverage')).toContain(
        `7 days, all due hours compared; ${counts.expected} events expected: none missing, ${counts.recovered} recovered`,
      );
    },
  );
});
