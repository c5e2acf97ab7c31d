/** `earshot coverage`: table, timeline of hours, missing events, and the document of `/api/coverage`. */
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { expectEnd, expectRefusal, printed } from '../../helpers/fake-io.ts';
import { hourUs, nowUs, openReconcileContext } from './reconcile-context.ts';

/** Opens a context with 60 pushed publications, compared. */
async function openCompared(name = 'sea-ice', ...flags: string[]) {
  const context = await openReconcileContext();
  await context.register(name);
  await context.push(name, (await context.catalogueProducts()).slice(0, 60));
  await context.run(['reconcile', '--since', '3d', ...flags]);
  return context;
}

const stripOf = (out: string) =>
  out
    .split('\n\n')
    .find((block) => /^ {2}2026-/m.test(block))
    ?.split('\n')
    .slice(1);

describe('earshot coverage', () => {
  it('shows complete coverage: a table and a timeline of hours', async () => {
    const { run, register } = await openCompared();
    const out = await printed(run('coverage --since 3d'));
    const [sum = '', table = '', strip = '', legend = ''] = out.trimEnd().split('\n\n');
    expect(sum).toBe(
      '113 events were expected in 72 compared hours: 113 are in the log, nothing is missing.',
    );
    expect(table.split('\n')).toEqual([
      'subscription  expected  pushed  late  recovered  missing    compared  complete',
      'sea-ice            113      60     0         53        0  72 of 72 h     100 %',
    ]);
    expect(strip.split('\n')).toEqual([
      'sea-ice',
      // Subscribed throughout, but nothing was published yet.
      '  2026-04-29              ░░░░░░░░░░░░',
      '  2026-04-30  ░░░░░░░░░░░░▒░▒███▒█▒▒█▒',
      '  2026-05-01  ████▒██▒█▒▒█████▒▒▒█▒█▒▒',
      // The current hour and the next ones.
      '  2026-05-02  ▒▒▒▒▒▒▒▒▒▒▒▒·           ',
    ]);
    expect(legend).toBe('· not due   ░ no event   █ pushed   ▒ recovered   (UTC)');

    await register('alps');
    expect((await run('coverage --since 3d')).out.split('\n').slice(3, 6)).toEqual([
      'alps                 -       -     -          -        -   0 of 71 h         -',
      'sea-ice            113      60     0         53        0  72 of 72 h     100 %',
      'all together       113      60     0         53        0           -     100 %',
    ]);
    const one = await expectEnd(run('coverage --since 3d --subscription alps'), 0);
    expect(one.out).not.toContain('sea-ice');
  });

  // docs/operations.md shows the output.
  it('exits with 3 when events are missing, until the printed command has recovered them', async () => {
    const { run } = await openCompared('sea-ice', '--check');
    const { err } = await expectEnd(run('coverage --since 3d'), 3, '53 events are missing.');
    const [, command = ''] = /`earshot (reconcile [^`]+)`/.exec(err) ?? [];
    await expectEnd(run(command), 0, /^Recovered \d+ missing events\./);
    await expectEnd(run('coverage --since 3d'), 0);
  });

  it('fits 80 columns, with long names, and with one character for each of many days', async () => {
    const { run } = await openCompared('forests-of-northern-scandinavia');
    const terminal = { isTTY: true, columns: 80 };
    const { out } = await run('coverage --since 75d', terminal);
    const plain = stripVTControlCharacters(out);
    expect(out).not.toBe(plain);
    // Starts with the first day of the subscription.
    expect(stripOf(plain)).toEqual([`  2026-04-18  ${'?'.repeat(12)}▒▒▒`]);
    const week = await run('coverage', { ...terminal, env: { NO_COLOR: '1' } });
    expect(stripOf(week.out)).toHaveLength(8);
    expect(week.out).not.toContain('\u001b');
    expect(week.out).toMatch(/^fore\S*… *\S* +113 /m);
    for (const line of `${plain}\n${week.out}`.split('\n')) {
      expect(line.length).toBeLessThanOrEqual(80);
    }
  });

  it('starts with the day of the registration in the hourly view, too', async () => {
    const context = await openReconcileContext({ past: undefined });
    await context.register('alps', { atUs: nowUs - 26 * hourUs });
    const { out } = await context.run('coverage');
    expect(stripOf(out)).toEqual([
      `  2026-05-01  ${' '.repeat(10)}${'?'.repeat(14)}`,
      `  2026-05-02  ${'?'.repeat(11)}··${' '.repeat(11)}`,
    ]);
    for (const flags of ['', ' --subscription alps']) {
      const argv = `coverage --until 2026-04-26${flags}`;
      await expectRefusal(context.run(argv), 'registered in this data directory at that time');
    }
  });
});
