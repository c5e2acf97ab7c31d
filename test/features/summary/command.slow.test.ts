/** `earshot summarize`: the summaries of flags, the preview, the budget, and a service that fails. */

import { expect, it, vi } from 'vitest';
import { summaryFields } from '../../../src/core/terms/read-models.ts';
import { nowUs, runCommand } from '../../helpers/fake-io.ts';
import { guid, samples } from '../products/product-samples.ts';
import { createSummaryContext, model } from './summary-context.ts';

const linesOf = (out: string) =>
  out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

it('--dry-run prints the requests, and sends nothing', async () => {
  const context = await createSummaryContext();
  const shown = await context.summarize(['--each', '--dry-run', '--json']);
  expect(shown.err).toMatch(/^4 requests, about [\d,]+ tokens\. Nothing was sent\.\n$/);
  const [row] = linesOf(shown.out);
  expect(row).toMatchObject({ kind: 'product', tokens: expect.any(Number) });
  expect(row.request).toMatchObject({ model, messages: [{ role: 'system' }, {}] });
  const look = await context.summarize(['--each', '--dry-run', '--limit', '1']);
  expect(look.out).toMatch(/\n\nYou write [\s\S]*\n\{size\}: 1.2 GB\n/);
  expect(context.inference.totals().requests).toBe(0);
});

it('--each writes one summary of each product received in a period, once', async () => {
  const context = await createSummaryContext();
  const some = await context.summarize(['--each', '--since', '2h', '--limit', '2', '--json']);
  expect(some).toMatchObject({ code: 0, err: '2 written.\n' });
  const rows = linesOf(some.out);
  expect(rows.map((row) => Object.keys(row))).toEqual([[...summaryFields], [...summaryFields]]);
  expect(rows.map(({ productId }) => productId).toSorted()).toEqual([guid('3'), guid('4')]);
  expect(rows[0]).toMatchObject({ kind: 'product', model, state: 'done' });
  const all = await context.summarize(['--each', '--subscription', 'sea-ice']);
  expect(all.err).toBe('2 written, 2 already present.\n');
  for (const { name } of samples.slice(0, 4)) expect(all.out).toContain(name);
  const early = ['--each', '--until', '90m', '--limit', '1'];
  expect((await context.summarize(early)).err).toMatch(/^There is nothing to summarize\./);
});

it.each<[words: string[], digits: string[]]>([
  [[], ['2', '1']],
  [['--since', '24h'], []],
])('--each --filter %j selects products of any time, or of the period', async (words, digits) => {
  const context = await createSummaryContext();
  const later = () => Date.UTC(2026, 4, 20) * 1000;
  const argv = ['--each', '--filter', "startswith(Name,'S2')", '--dry-run', '--json', ...words];
  const { out } = await context.summarize(argv, { nowUs: later });
  expect(linesOf(out).map(({ productId }) => productId)).toEqual(digits.map(guid));
});

it('--digest writes one text for each complete window', async () => {
  const context = await createSummaryContext();
  const last = await context.summarize(['--digest', 'hour']);
  expect(last).toMatchObject({ code: 0, err: '1 written.\n' });
  const [subject] = last.out.split('\n');
  const span = '2026-05-02 11:00 to 2026-05-02 12:00 UTC';
  expect(subject).toBe(`digest of all subscriptions, ${span}  #1 by ${model}`);
  const later = () => nowUs + 20 * 60_000_000;
  const more = await context.summarize(['--digest', 'hour', '--since', '150m'], { nowUs: later });
  expect(more.err).toBe('1 already present, 2 without products.\n');
  const deleted = ['--digest', 'day', '--filter', "contains(Name,'_20260101T103021_')"];
  const nextDay = () => nowUs + 24 * 3_600_000_000;
  const ofDay = await context.summarize(deleted, { nowUs: nextDay });
  expect(ofDay).toMatchObject({ err: '1 written.\n' });
  const filter = "Collection/Name eq 'SENTINEL-1'";
  const part = ['--filter', filter, '--subscription', 'sea-ice'];
  const { err } = await context.summarize(['--digest', 'day', ...part], { nowUs: nextDay });
  expect(err).toBe('1 written.\n');
  expect(await context.summaries('--kind', 'digest', '--limit', '1')).toMatchObject([
    {
      ...{ kind: 'digest', productId: null, subscription: 'sea-ice', filter },
      facts: { count: '1' },
      receivedFrom: '2026-05-02T00:00:00.000000Z',
      receivedUntil: '2026-05-03T00:00:00.000000Z',
    },
  ]);
});

it.each([
  [{ EARSHOT_SUMMARY_REQUESTS_PER_DAY: '2' }, 0, /^2 written\. The budget is used up/],
  [{ EARSHOT_INFERENCE_API_KEY: 'no-key' }, 1, /^earshot: .*INFERENCE_API_KEY/],
  [{ EARSHOT_INFERENCE_URL: 'http://127.0.0.1:9' }, 1, /^earshot: .*127\.0\.0\.1:9/],
])('with %j ends with %i, and the same command continues', async (env, code, message) => {
  const context = await createSummaryContext();
  const ended = await context.summarize(['--each'], { env });
  expect(ended).toMatchObject({ code, err: expect.stringMatching(message) });
  expect(ended.err).toContain('The same command continues');
  expect(ended.err).not.toContain('no-key');
  expect(await context.summaries('--state', 'waiting')).toEqual([]);
  const later = () => nowUs + 25 * 3_600_000_000;
  const argv = ['--each', '--since', '2d'];
  expect(await context.summarize(argv, { nowUs: later })).toMatchObject({ code: 0 });
  expect(await context.summaries('--state', 'done')).toHaveLength(4);
});

it('ends at once when the user stops it, and the same command continues', async () => {
  const context = await createSummaryContext({ next: { hang: 1 } });
  const running = context.startSummarize(['--each']);
  await vi.waitFor(() => expect(context.inference.totals().inFlight).toBe(1), 10_000);
  running.stop();
  const { code, out, err } = await running.ended;
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toMatch(/^earshot: Stopped\. The same command continues/m);
  expect(await context.summaries()).toEqual([]);
  expect(await context.summarize(['--each'])).toMatchObject({ err: '4 written.\n' });
});

it.each([
  ['--digest daily', /Allowed choices are hour, day, week/],
  ['--each --digest day', /'--digest <window>' cannot be used with option '--each'/],
  ['each', /too many arguments/],
  ['--since 24h', /Add --each or --digest day/],
  ['--each --since 2027-01-01', /There is no database in \/nonexistent\/earshot.*EARSHOT_DATA_DIR/],
  ['--each --filter Naem', /The filter is not valid for Products[\s\S]*Naem\n\s*\^/],
])('%s exits 2 with a correction', async (line, message) => {
  const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot' };
  const { code, out, err } = await runCommand(['summarize', ...line.split(' ')], { env });
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toMatch(message);
});

it('refuses an empty period', async () => {
  const context = await createSummaryContext();
  const empty = await context.summarize(['--each', '--since', '2027-01-01']);
  expect(empty).toMatchObject({ code: 2, out: '' });
  expect(empty.err).toContain('--since must be earlier than --until and earlier than now');
});
