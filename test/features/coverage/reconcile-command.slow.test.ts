/** `earshot reconcile` against a catalogue on loopback: found, stored and printed events. */
import { describe, expect, it } from 'vitest';
import { collect } from '../../helpers/deliveries.ts';
import { expectEnd } from '../../helpers/fake-io.ts';
import { hourUs, nowUs, openReconcileContext, type ReconcileContext } from './reconcile-context.ts';

/** A context with 60 pushed publications. */
async function openPartlyPushed() {
  const context = await openReconcileContext();
  await context.register('sea-ice');
  await context.push('sea-ice', (await context.catalogueProducts()).slice(0, 60));
  return context;
}

const rowsOf = ({ withStore }: ReconcileContext) =>
  withStore((store) => collect(store.find({ order: 'oldest' })));

const eventsOf = (rows: readonly { event: string; productId: string }[]) =>
  rows.map(({ event, productId }) => `${event} ${productId}`).toSorted();

/** The events that the catalogue still shows: each product's newest state. */
function shown({ sandbox }: ReconcileContext): string[] {
  return eventsOf(sandbox.events().filter((event) => event.shown));
}

describe('earshot reconcile', () => {
  it('stores every event that the catalogue shows and no push reported, and finds nothing in a second run', async () => {
    const context = await openPartlyPushed();
    const first = await expectEnd(context.run('reconcile --since 3d'), 0);
    expect(first.err).toMatch(/^Recovered 55 missing events\. Expected: 115 events\. 3 requests, /);
    const rows = await rowsOf(context);
    expect(eventsOf(rows)).toEqual(shown(context));
    expect(rows.filter(({ source }) => source === 'reconcile')).toHaveLength(55);
    const second = await context.run('reconcile --since 3d');
    expect(second).toMatchObject({ code: 0, out: first.out });
    expect(second.err).toMatch(/^Nothing is missing\. Expected: 115 events\. 3 requests, /);
    expect(await rowsOf(context)).toEqual(rows);
  });

  it('prints the counts as a table, and progress on a terminal only', async () => {
    const context = await openPartlyPushed();
    const inPipe = await context.run('reconcile --since 3d');
    expect(inPipe.out.split('\n')).toEqual([
      'subscription  event     expected  pushed  late  recovered  missing',
      'sea-ice       created         89      60     0         29        0',
      'sea-ice       modified        19       0     0         19        0',
      'sea-ice       deleted          7       0     0          7        0',
      '',
    ]);
    expect(inPipe.err.split('\n')).toHaveLength(2);
    const onTerminal = await context.run('reconcile --since 3d', {
      isTTY: true,
      columns: 80,
    });
    expect(onTerminal.out).toBe(inPipe.out);
    const progress = onTerminal.err;
    const result = progress.trimEnd().split('\r').at(-1) ?? '';
    expect(progress).toContain(
      '\rsea-ice created (1 of 3) · 89 of 89 records · 2026-05-02 12:20 · 1 request',
    );
    expect(progress).toContain('\rsea-ice deleted (3 of 3) · 7 of 7');
    expect(result).toMatch(/^Nothing is missing/);
    for (const line of `${onTerminal.out}${onTerminal.err}`.split(/[\r\n]/)) {
      if (line !== result) expect(line.length).toBeLessThan(80);
    }
  });

  it('lists missing events with --dry-run, and writes nothing', async () => {
    const context = await openPartlyPushed();
    const before = await rowsOf(context);
    const { out, err } = await expectEnd(context.run('reconcile --since 3d --dry-run'), 0);
    const lines = out.split('\n').slice(0, -1);
    expect(lines).toHaveLength(55);
    const [newest] = (await context.catalogueProducts()).toReversed();
    const date = newest?.PublicationDate.slice(0, 19).replace('T', ' ');
    expect(lines).toContain(`${date}  created   sea-ice  ${newest?.Name}`);
    expect(err).toMatch(/^Missing: 55 of 115 events\. To fetch missing events, omit --dry-run\. /);
    expect(await rowsOf(context)).toEqual(before);
    // The known hours did not change, either.
    const coverage = await context.run('coverage --since 3d --json');
    expect(JSON.parse(coverage.out).subscriptions[0]).toMatchObject({ comparedHours: 0 });
  });

  it('prints a line per missing event with --dry-run --json, with the documented fields', async () => {
    const context = await openPartlyPushed();
    const { out } = await context.run('reconcile --since 3d --dry-run --json');
    const rows = out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    const pushed = new Set(eventsOf(await rowsOf(context)));
    expect(eventsOf(rows)).toEqual(shown(context).filter((event) => !pushed.has(event)));
    const deleted = rows.find(({ event }) => event === 'deleted');
    expect(Object.keys(deleted)).toEqual(
      'subscription event productId productName date'.split(' '),
    );
    expect(deleted.date).toMatch(/^2026-0[45]-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    const { out: help } = await context.run('reconcile --help');
    expect(help).toContain(`missing event: ${Object.keys(deleted).slice(0, 2).join(', ')}`);
  });

  it('exits with 3 and writes no notification with --check, and with 0 once nothing is missing', async () => {
    const context = await openPartlyPushed();
    const before = await rowsOf(context);
    const check = ['reconcile', '--since', '3d', '--check'];
    const first = await expectEnd(context.run(check), 3);
    expect(first.out).toContain('created         89      60     0          0       29\n');
    expect(first.err.split('\n').slice(1)).toEqual([
      'earshot: 55 events are missing. To fetch missing events, omit --check.',
      '',
    ]);
    const preview = await expectEnd(context.run([...check, '--dry-run']), 3);
    expect(preview.err).toContain('To fetch missing events, omit --check and --dry-run.');
    expect(await rowsOf(context)).toEqual(before);
    await context.run('reconcile --since 3d');
    expect(await context.run(check)).toMatchObject({ code: 0 });
  });

  it('prints the window, the effort and the counts with --json, with the documented fields', async () => {
    const context = await openPartlyPushed();
    const { out, err } = await context.run('reconcile --since 3d --until 1h -o json');
    expect(err).toBe('');
    const document = JSON.parse(out);
    expect(document).toEqual({
      from: '2026-04-29T12:20:00.000000Z',
      to: '2026-05-02T11:20:00.000000Z',
      requests: 3,
      seconds: 0,
      answersSeconds: 0,
      waitedSeconds: 0,
      fetched: expect.any(Number),
      counts: ['created', 'modified', 'deleted'].map((event) => ({
        ...{ subscription: 'sea-ice', event, late: 0, missing: 0, unreadable: 0, undecided: 0 },
        ...{ expected: expect.any(Number), pushed: event === 'created' ? 60 : 0 },
        recovered: expect.any(Number),
      })),
      earlier: { fetched: 0, counts: [] },
    });
    const sum = (key: string) =>
      document.counts.reduce(
        (total: number, row: Record<string, number>) => total + (row[key] ?? 0),
        0,
      );
    expect(document.fetched).toBe(sum('recovered'));
    expect(sum('expected')).toBe(sum('pushed') + sum('recovered'));
    const { out: help } = await context.run('reconcile --help');
    for (const name of [...Object.keys(document), ...Object.keys(document.counts[0])]) {
      expect(help).toContain(name);
    }
  });

  it('reports the number of deletions that the filter cannot decide', async () => {
    const context = await openReconcileContext();
    await context.register('online', { filter: 'Online eq true' });
    const { out, err } = await expectEnd(context.run('reconcile --since 3d'), 0);
    expect(out).toMatch(/^online +deleted +0 +0 +0 +0 +0$/m);
    const { deletedProducts } = context.sandbox.holdings();
    expect(err).toContain(
      ` events. Not counted: ${deletedProducts} records without a property that the filter uses. `,
    );
    const { out: json } = await context.run('reconcile --since 3d --check --json');
    const [, , deleted] = JSON.parse(json).counts;
    expect(deleted).toMatchObject({ event: 'deleted', expected: 0, undecided: deletedProducts });
  });

  it('compares a subscription with its own filter, and only the named one', async () => {
    const context = await openReconcileContext();
    await context.register('all');
    await context.register('s2', { filter: "Collection/Name eq 'SENTINEL-2'" });
    const matching = (await context.catalogueProducts()).filter(({ Name }) =>
      Name.startsWith('S2'),
    );
    const { out } = await context.run('reconcile --since 3d --subscription s2 --json'.split(' '));
    const { counts } = JSON.parse(out);
    expect(counts.map((row: { subscription: string }) => row.subscription)).toEqual([
      's2',
      's2',
      's2',
    ]);
    const rows = await rowsOf(context);
    const created = rows.filter(({ event }) => event === 'created');
    expect(created.map(({ productId }) => productId)).toEqual(matching.map(({ Id }) => Id));
  });
});

/** A context in which the publications of the last two days were pushed, and those of the first day pruned. */
async function openPruned() {
  const context = await openReconcileContext({ modifiedShare: 0, deletedShare: 0 });
  await context.register('sea-ice');
  await context.push('sea-ice', await context.catalogueProducts());
  await context.run('reconcile --since 3d');
  const { err } = await context.run('prune --older-than 1d --yes');
  expect(err).toContain('Deleted 47 notifications.');
  return context;
}

it('compares from the end of the pruned part, and recovers nothing that was pruned', async () => {
  const { run, withStore } = await openPruned();
  const { err } = await expectEnd(run('reconcile --since 3d'), 0);
  expect(err).toContain(
    'Notifications before 2026-05-01 12:00 (UTC) were pruned, and pruned notifications are not fetched again. The comparison starts at this time.',
  );
  expect(await withStore((store) => store.counts())).toMatchObject({ notifications: 49 });
});

it('refuses a window that was pruned completely', async () => {
  const { run, asked } = await openPruned();
  const before = asked();
  const { err } = await expectEnd(run('reconcile --since 3d --until 2d'), 2);
  expect(err).toContain(
    'Notifications before 2026-05-01 12:00 (UTC) were pruned, and pruned notifications are not fetched again. Use a later --until.',
  );
  expect(asked()).toBe(before);
});

it('reports pruned hours, and counts only the others', async () => {
  const { run, withStore } = await openPruned();
  const { out } = await expectEnd(run('coverage --since 3d'), 0);
  const [, table = '', strip = '', legend] = out.split('\n\n');
  expect(table).toMatch(/sea-ice +48 +48 +0 +0 +0 +24 of 24 h +100 %/);
  expect(strip).toContain('  2026-04-30  ------------------------\n');
  expect(strip).toContain('  2026-05-01  ------------████████████\n');
  expect(legend).toBe('· not due   - pruned   █ pushed   (UTC)');
  const unprunedSinceUs = nowUs - 24 * hourUs - 20 * 60_000_000;
  expect(await withStore(({ completeness }) => completeness.unprunedSinceUs())).toBe(
    unprunedSinceUs,
  );
});
