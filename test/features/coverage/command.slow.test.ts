/** `earshot coverage`: table, timeline of hours, missing events, delays, and the document of `/api/coverage`. */
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { openProducts } from '../../../src/features/products/index-file/products.ts';
import { openConsole } from '../../core/api/console-context.ts';
import { expectEnd, expectRefusal, printed } from '../../helpers/fake-io.ts';
import { hourUs, nowUs, openReconcileContext } from './reconcile-context.ts';

/** A context with 60 pushed publications, compared. */
async function openCompared(...flags: string[]) {
  const context = await openReconcileContext();
  await context.register('sea-ice');
  await context.push('sea-ice', (await context.catalogueProducts()).slice(0, 60));
  await context.run(['reconcile', '--since', '3d', ...flags]);
  return context;
}

describe('earshot coverage', () => {
  it('shows complete coverage: a table, a timeline of hours and the delays', async () => {
    const { run } = await openCompared();
    const out = await printed(run('coverage --since 3d'));
    const [sum = '', table = '', open = '', strip = '', legend = '', delays = ''] =
      out.split('\n\n');
    expect(sum).toBe(
      '113 events were expected in 71 compared hours: 113 are in the log, nothing is missing.',
    );
    expect(open).toBe(
      'sea-ice: 1 hour is due, but not compared. To compare now: `earshot reconcile`.',
    );
    expect(table.split('\n')).toEqual([
      'subscription  expected  pushed  late  recovered  missing    compared  complete',
      'sea-ice            113      60     0         53        0  71 of 72 h     100 %',
    ]);
    expect(strip.split('\n')).toEqual([
      'sea-ice',
      // Subscribed throughout, but nothing was published yet; and the hour before the window.
      '  2026-04-29              ?░░░░░░░░░░░',
      '  2026-04-30  ░░░░░░░░░░░░▒░▒███▒█▒▒█▒',
      '  2026-05-01  ████▒██▒█▒▒█████▒▒▒█▒█▒▒',
      // The current hour and the next ones.
      '  2026-05-02  ▒▒▒▒▒▒▒▒▒▒▒▒·           ',
    ]);
    expect(legend).toBe('· not due   ░ no event   █ pushed   ▒ recovered   ? not compared   (UTC)');
    const rows = delays.split('\n').slice(0, -1);
    expect(rows.map((row) => row.slice(0, 41).trimEnd())).toEqual([
      'subscription  delay',
      'sea-ice       sensing to publication',
      'sea-ice       publication to notification',
      'sea-ice       notification to receipt',
    ]);
    expect(rows[2]).toMatch(/ {2}60( +(49|50) s){4}$/);
    expect(rows[3]).toMatch(/ {2}60( +10 s){4}$/);
  });

  it('names the incomplete hours, exits with 3, and prints the command that recovers them', async () => {
    const { run } = await openCompared('--check');
    const { out, err } = await expectEnd(run('coverage --since 3d'), 3);
    expect(out).toContain(
      'sea-ice            113      60     0          0       53  71 of 72 h    53.0 %',
    );
    expect(out).toContain('  2026-04-30  ░░░░░░░░░░░░!░!███!█!!█!\n');
    expect(out).toContain(
      '      1  2026-04-30 12:00  2026-04-30 13:00  sea-ice       earshot reconcile --since 2026-04-30T12:00Z --until 2026-04-30T13:00Z --subscription sea-ice\n',
    );
    expect(out.match(/ earshot reconcile --since /g)).toHaveLength(11);
    expect(err).toBe(
      'earshot: 53 events are missing. To fetch them: `earshot reconcile --since 2026-04-30T12:00Z`.\n',
    );
    // Run the printed command.
    const fetched = await run('reconcile --since 2026-04-30T12:00Z');
    expect(fetched.err).toMatch(/^Recovered 55 missing events\. Expected: \d+ events\./);
    expect(await run('coverage --since 3d')).toMatchObject({ code: 0 });
  });

  it('shows many days with one character each, and fits 80 columns', async () => {
    const { run } = await openCompared();
    const many = await run('coverage --since 75d', { isTTY: true, columns: 80 });
    const plain = stripVTControlCharacters(many.out);
    expect(many.out).not.toBe(plain);
    const stripOf = (text: string) => text.split('\n\n')[3]?.split('\n').slice(1);
    // Starts with the first day of a subscription.
    expect(stripOf(plain)).toEqual([`  2026-04-18  ${'?'.repeat(12)}▒▒▒`]);
    for (const line of plain.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    const week = await run('coverage', { isTTY: true, columns: 80, env: { NO_COLOR: '1' } });
    expect(stripOf(week.out)).toHaveLength(8);
    expect(week.out).not.toContain('\u001b');
  });

  it('starts with the day of the registration in the hourly view, too', async () => {
    const context = await openReconcileContext({ past: undefined });
    await context.register('alps', { atUs: nowUs - 26 * hourUs });
    const { out } = await context.run('coverage');
    expect(out.split('\n\n')[3]?.split('\n')).toEqual([
      'alps',
      `  2026-05-01  ${' '.repeat(10)}${'?'.repeat(14)}`,
      `  2026-05-02  ${'?'.repeat(11)}··${' '.repeat(11)}`,
    ]);
  });

  it('shortens long names so that its tables fit 80 columns', async () => {
    const context = await openReconcileContext();
    const name = 'forests-of-northern-scandinavia';
    await context.register(name);
    await context.push(name, (await context.catalogueProducts()).slice(0, 60));
    await context.run('reconcile --since 3d');
    const { out } = await context.run('coverage --since 3d', {
      ...{ isTTY: true, columns: 80, env: { NO_COLOR: '1' } },
    });
    expect(out).toMatch(/^fore\S*… *\S* +113 /m);
    expect(out).toContain('publication to notification');
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  it('adds up several subscriptions, and can show a single one', async () => {
    const context = await openCompared();
    await context.register('alps');
    const both = await context.run('coverage --since 3d');
    expect(both.out.split('\n').slice(3, 6)).toEqual([
      'alps                 -       -     -          -        -   0 of 71 h         -',
      'sea-ice            113      60     0         53        0  71 of 72 h     100 %',
      'all together       113      60     0         53        0           -     100 %',
    ]);
    const one = await expectEnd(context.run('coverage --since 3d --subscription alps'), 0);
    expect(one.out).not.toContain('sea-ice');
  });

  it('prints the document of /api/coverage with --json', async () => {
    const { run, dataDir, withStore } = await openCompared('--check');
    const asked = await expectEnd(run('coverage --since 2026-05-01 --json'), 3);
    const document = JSON.parse(asked.out);
    expect(document).toMatchObject({ since: '2026-05-01T00:00:00.000000Z', missing: 46 });
    await withStore(async ({ completeness }) => {
      const products = openProducts(dataDir);
      const { get } = await openConsole({ completeness, products, nowUs: () => nowUs });
      const { json } = await get('/api/coverage?since=2026-05-01');
      expect(json).toEqual(document);
      expect(json.subscriptions[0].delays.notificationToReceipt).toMatchObject({ p50: 10 });
      await products.close();
    });
  });

  it('shows the hours without delays when there is no product index', async () => {
    const context = await openReconcileContext({ past: undefined });
    await context.register('sea-ice');
    const { out } = await expectEnd(context.run('coverage --since 5h'), 0);
    expect(out).toContain(
      'sea-ice              -       -     -          -        -  0 of 4 h         -',
    );
    expect(out.trimEnd().endsWith('(UTC)')).toBe(true);
  });

  it.each([
    [['--since', '2027-01-01'], 'The time range is empty'],
    [['--since', '2026-05-02', '--until', '2026-05-01'], 'The time range is empty'],
    [['--since', 'monday'], 'Use 90m, 24h, 7d'],
    [['--subscription', 'alps'], 'There is no subscription alps. Known: sea-ice.'],
    [
      ['--subscription', 'sea-ice', '--until', '2026-04-26'],
      'Subscription sea-ice was not registered in this data directory at that time',
    ],
    [
      ['--until', '2026-04-26'],
      'No subscription was registered in this data directory at that time',
    ],
    [['--since', '0h'], 'The time range is empty'],
  ])('refuses %j', async (flags, words) => {
    const context = await openReconcileContext({ past: undefined });
    await context.register('sea-ice', { atUs: nowUs - 1_000_000 });
    let clockUs = nowUs;
    const ticking = () => {
      clockUs += 7_000;
      return clockUs;
    };
    await expectRefusal(context.run(['coverage', ...flags], { nowUs: ticking }), words);
  });

  it('reports with any flags that nothing was ever registered', async () => {
    const context = await openReconcileContext({ past: undefined });
    await context.withStore(async () => undefined);
    for (const flags of [
      ['--since', '3h'],
      ['--subscription', 'alps'],
    ]) {
      const { err } = await expectEnd(context.run(['coverage', ...flags]), 2);
      expect(err).toMatch(/No subscription was ever registered .* Run `earshot register` first/);
    }
  });
});
