/** `earshot reconcile` against a catalogue on loopback: what it prints and stores, and problems on the way. */
import { describe, expect, it, test } from 'vitest';
import { createAcquireLock } from '../../../src/store/engine/locks.ts';
import { collect } from '../../helpers/deliveries.ts';
import { expectEnd, expectRefusal, printedJson } from '../../helpers/fake-io.ts';
import { hourUs, nowUs, openReconcileContext, type ReconcileContext } from './reconcile-context.ts';

const reconcile = ['reconcile', '--since', '3d'];

async function openRegistered(options: Parameters<typeof openReconcileContext>[0] = {}) {
  const context = await openReconcileContext(options);
  await context.register('sea-ice');
  return context;
}

/** Opens a context with 60 pushed publications. */
async function openPartlyPushed() {
  const context = await openRegistered();
  await context.push('sea-ice', (await context.catalogueProducts()).slice(0, 60));
  return context;
}

const rowsOf = ({ withStore }: ReconcileContext) =>
  withStore((store) => collect(store.find({ order: 'oldest' })));

const eventsOf = (rows: readonly { event: string; productId: string }[]) =>
  rows.map(({ event, productId }) => `${event} ${productId}`).toSorted();

/** The events that the catalogue still shows: each product's newest state. */
const shown = ({ sandbox }: ReconcileContext) =>
  eventsOf(sandbox.events().filter((event) => event.shown));

describe('earshot reconcile', () => {
  it('stores what no push reported, and prints the counts, with progress on a terminal only', async () => {
    const context = await openPartlyPushed();
    const first = await expectEnd(context.run(reconcile), 0);
    expect(first.err).toMatch(/^Recovered 55 missing events\. Expected: 115 events\. 3 requests, /);
    expect(first.out.split('\n')).toEqual([
      'subscription  event     expected  pushed  late  recovered  missing',
      'sea-ice       created         89      60     0         29        0',
      'sea-ice       modified        19       0     0         19        0',
      'sea-ice       deleted          7       0     0          7        0',
      '',
    ]);
    const rows = await rowsOf(context);
    expect(eventsOf(rows)).toEqual(shown(context));
    const again = await context.run(reconcile, { isTTY: true, columns: 80 });
    expect(again).toMatchObject({ code: 0, out: first.out });
    expect(await rowsOf(context)).toEqual(rows);
    const lines = again.err.trimEnd().split('\r');
    expect(lines.at(-1)).toMatch(/^Nothing is missing\. Expected: 115 events\. 3 requests, /);
    expect(lines.join('')).toContain('sea-ice created (1 of 3) · 89 of 89 records · 2026-05-02');
    for (const line of lines.slice(0, -1)) expect(line.length).toBeLessThan(80);
  });

  it('lists missing events with --dry-run, and writes nothing, and writes nothing', async () => {
    const context = await openPartlyPushed();
    const before = await rowsOf(context);
    await expectEnd(context.run([...reconcile, '--dry-run']), 0, /^Missing: 55 of 115 events\. /);
    const json = await context.run([...reconcile, '--dry-run', '--json']);
    const events = json.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(eventsOf([...events, ...before])).toEqual(shown(context));
    const fields = 'subscription event productId productName date'.split(' ');
    for (const event of events) expect(Object.keys(event)).toEqual(fields);
    expect(await rowsOf(context)).toEqual(before);
    const coverage = await printedJson(context.run('coverage --since 3d --json'));
    expect(coverage.subscriptions[0]).toMatchObject({ comparedHours: 0 });
  });

  it('exits with 3 and writes no notification with --check, and with 0 once nothing is missing', async () => {
    const context = await openPartlyPushed();
    const check = [...reconcile, '--check'];
    const first = await expectEnd(context.run(check), 3, 'To fetch missing events, omit --check.');
    expect(first.out).toContain('created         89      60     0          0       29\n');
    await expectEnd(context.run([...check, '--dry-run']), 3, 'omit --check and --dry-run.');
    expect(await rowsOf(context)).toHaveLength(60);
    await context.run(reconcile);
    await expectEnd(context.run(check), 0);
  });

  it('prints the window, the effort and the counts with --json, with the documented fields', async () => {
    const context = await openPartlyPushed();
    const document = await printedJson(context.run([...reconcile, '--until', '1h', '-o', 'json']));
    expect(document).toEqual({
      ...{ from: '2026-04-29T12:00:00.000000Z', to: '2026-05-02T12:00:00.000000Z' },
      ...{ requests: 3, seconds: 0, fetched: 53 },
      counts: ['created', 'modified', 'deleted'].map((event) => ({
        ...{ subscription: 'sea-ice', event, late: 0, missing: 0, unreadable: 0, undecided: 0 },
        ...{ expected: expect.any(Number), pushed: event === 'created' ? 60 : 0 },
        recovered: expect.any(Number),
      })),
    });
    const { out: help } = await context.run('reconcile --help');
    for (const name of [...Object.keys(document), ...Object.keys(document.counts[0])]) {
      expect(help).toContain(name);
    }
  });

  it('compares only the named subscription, with its filter, and reports undecided records', async () => {
    const context = await openRegistered();
    await context.register('online', { filter: 'Online eq true' });
    const { err } = await expectEnd(context.run([...reconcile, '--subscription', 'online']), 0);
    const deleted = context.sandbox.events().filter(({ event }) => event === 'deleted');
    expect(err).toContain(`Not counted: ${deleted.length} records without a property`);
    const rows = await rowsOf(context);
    expect(new Set(rows.map(({ subscription }) => subscription))).toEqual(new Set(['online']));
    expect(rows.map(({ event }) => event)).not.toContain('deleted');
  });

  it('compares, and reports, nothing that was pruned', async () => {
    const context = await openReconcileContext({ modifiedShare: 0, deletedShare: 0 });
    await context.register('sea-ice');
    await context.push('sea-ice', await context.catalogueProducts());
    await context.run(reconcile);
    await expectEnd(context.run('prune --older-than 1d --yes'), 0, 'Deleted 47 notifications.');
    const pruned = 'Notifications before 2026-05-01 12:00 (UTC) were pruned';
    await expectEnd(context.run(reconcile), 0, pruned);
    expect(await rowsOf(context)).toHaveLength(49);
    const asked = context.asked();
    expect((await expectEnd(context.run([...reconcile, '--until', '2d']), 2)).err).toContain(
      pruned,
    );
    expect(context.asked()).toBe(asked);
    const { out } = await expectEnd(context.run('coverage --since 3d'), 0);
    expect(out).toMatch(/sea-ice +48 +48 +0 +0 +0 +24 of 24 h +100 %/);
    expect(out).toContain('  2026-05-01  ------------████████████\n');
    expect(out).toContain('· not due   - pruned   █ pushed   (UTC)');
  });
});

it.each([
  ['--subscription alps', 'There is no subscription alps. Known: sea-ice.'],
  ['--since 1d --until 2d', 'is not after --since'],
  ['--since 2026-06-01', 'The time range is empty'],
  ['--since yesterday', 'Use 90m, 24h, 7d'],
])('reconcile and coverage refuse %s', async (flags, reason) => {
  const context = await openRegistered({ past: undefined });
  let clockUs = nowUs;
  const ticking = () => {
    clockUs += 7_000;
    return clockUs;
  };
  const words = flags.includes('--since') ? flags : `--since 3d ${flags}`;
  for (const command of ['reconcile', 'coverage']) {
    await expectRefusal(context.run(`${command} ${words}`, { nowUs: ticking }), reason);
  }
  expect(context.asked()).toBe(0);
});

it('without a subscription both commands name the registration, with or without a name', async () => {
  const context = await openReconcileContext({ past: undefined });
  await context.withStore(async () => undefined);
  for (const command of ['reconcile', 'coverage', 'coverage --subscription alps']) {
    await expectRefusal(
      context.run(`${command} --since 3h`),
      /No subscription was ever registered .*earshot register/,
    );
  }
});

const inContext = test.extend('context', () => openRegistered());

/** Runs the command and stops it at the third catalogue query, which is never answered. */
async function cutThird(context: ReconcileContext) {
  let asked = 0;
  const stopping: typeof fetch = async (input, init) => {
    asked += 1;
    if (asked === 3) running.stop();
    return fetch(input, init);
  };
  const running = context.start(reconcile, { fetch: stopping });
  return running.ended;
}

inContext(
  'a problem of the catalogue is shown while requests are repeated, below the progress',
  async ({ context }) => {
    let asked = 0;
    const failing: typeof fetch = async (input, init) => {
      asked += 1;
      return asked === 2 ? new Response('', { status: 500 }) : fetch(input, init);
    };
    const { err } = await context.run(reconcile, { fetch: failing, isTTY: true, columns: 80 });
    expect(err).toMatch(
      /1 request *\r +\rThe catalogue could not list [^\n]* \(500\)\. Retrying in \d[^\n]* s …\n\rsea-ice/,
    );
    expect(err).toContain('Recovered 115 missing events. Expected: 115 events. 4 requests');
  },
);

inContext('is complete when it is repeated after Ctrl-C', async ({ context }) => {
  const { err } = await expectEnd(cutThird(context), 1);
  expect(err).toContain('Interrupted. What was fetched is kept');
  await expectEnd(context.run(reconcile), 0, /^Recovered 7 missing/);
  expect(await rowsOf(context)).toHaveLength(115);
  await expectEnd(context.run(reconcile), 0, /^Nothing is missing/);
});

inContext('waits for another comparison, says so, and then continues', async ({ context }) => {
  const release = await createAcquireLock(context.dataDir)('reconcile', { waitMs: 0 });
  const running = context.start(reconcile);
  await expect.poll(running.err).toContain('Waiting for another comparison');
  expect(context.asked()).toBe(0);
  release();
  await expectEnd(running.ended, 0);
});

describe('with a clock that differs from the catalogue’s', () => {
  /** Times of receipt in the log. */
  const receivedAt = async (context: ReconcileContext) =>
    new Set((await rowsOf(context)).map(({ receivedAtUs }) => receivedAtUs));

  it('by a day, no hour is complete that has not ended by the catalogue’s', async () => {
    const context = await openRegistered();
    const ownUs = nowUs + 24 * hourUs;
    await expectEnd(context.run(reconcile, { nowUs: () => ownUs }), 0);
    const hours = await context.withStore(({ completeness }) =>
      completeness.coverage({ sinceUs: 0, untilUs: nowUs + 9 * 24 * hourUs }),
    );
    // The complete hours of two days: the third day is in the future.
    expect(hours).toHaveLength(3 * 48);
    const latestUs = Math.max(...hours.map((hour) => hour.hourUs + hourUs));
    expect(latestUs).toBe(Date.UTC(2026, 4, 2, 12) * 1_000);
    expect(Math.max(...hours.map(({ comparedAtUs }) => comparedAtUs))).toBeLessThan(nowUs + hourUs);
  });

  it.each([-3, 3])(
    'by %d hours, recovered events are dated by ours, like pushes',
    async (hours) => {
      const context = await openRegistered();
      const ownUs = nowUs + hours * hourUs;
      await expectEnd(context.run(reconcile, { nowUs: () => ownUs }), 0);
      expect(await receivedAt(context)).toEqual(new Set([ownUs]));
    },
  );
});
