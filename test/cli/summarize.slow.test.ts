/** `earshot summarize`: requests of rules, requests of flags, and the preview of requests. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { summaryFields } from '../../src/domain/summaries.ts';
import { nowUs, runCommand } from './fake-io.ts';
import { deliveryOf, guid, samples } from './product-samples.ts';
import { createSummaryContext, model } from './summary-context.ts';

const linesOf = (out: string) =>
  out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

const news = ['6', '7'].map((digit) => ({
  id: guid(digit),
  name: `S2A_MSIL2A_20260502T10302${digit}_N0511_R108_T31UFR_20260502T11000${digit}.SAFE`,
}));

describe('earshot summarize', () => {
  it('applies the rules by default to notifications that arrived since they exist', async () => {
    const context = await createSummaryContext();
    const none = await context.summarize([]);
    expect(none).toMatchObject({ code: 0, out: '' });
    expect(none.err).toMatch(
      /^No rule requests summaries\. Set EARSHOT_SUMMARY.*--each --since 24h/,
    );
    const env = { EARSHOT_SUMMARY: 'each' };
    const first = await context.summarize([], { env });
    expect(first.err).toMatch(
      /^There are no summaries to write now\. For products received before.*--each --since 24h`\n$/,
    );
    await context.fill(news.map(deliveryOf));

    // The preview sends and changes nothing, and prints the later request byte for byte.
    const look = await context.summarize(['--dry-run', '--json'], { env });
    expect(look.err).toMatch(
      /^2 requests, about [\d,]+ tokens\. Budget: 60 requests per hour, 500 per day, 500,000 tokens per day\. Nothing was sent\.\n$/,
    );
    expect(context.sandbox.inference.totals().requests).toBe(0);
    expect(await context.summaries()).toEqual([]);
    const shown = linesOf(look.out);
    expect(shown.map(({ productId }) => productId)).toEqual(news.map(({ id }) => id));

    const { code, out, err } = await context.summarize([], { env });
    expect({ code, err }).toEqual({ code: 0, err: '2 written.\n' });
    expect(context.sent.toSorted()).toEqual(
      shown.map(({ request }) => JSON.stringify(request)).toSorted(),
    );
    for (const { name } of news) expect(out).toContain(`${name}  written\n  This product of `);
    expect((await context.summarize([], { env })).err).toContain(
      'There are no summaries to write now.',
    );
    expect(context.sandbox.inference.totals()).toMatchObject({ distinct: 2, repeated: 0 });
  });

  it('takes rules from earshot.config.ts, and refuses a faulty one', async () => {
    const context = await createSummaryContext();
    const write = (summary: string) =>
      writeFileSync(
        join(context.workingDir, 'earshot.config.ts'),
        `export default { subscriptions: { 'sea-ice': { summary: ${summary} } } };\n`,
      );
    write(`{ each: { filter: "endswith(Name,'110007.SAFE')" } }`);
    await context.summarize([]);
    await context.fill(news.map(deliveryOf));
    expect((await context.summarize([])).err).toBe('1 written.\n');
    expect(await context.summaries()).toMatchObject([{ productId: guid('7'), error: null }]);

    write(`{ each: { filter: "Naem eq 'x'" } }`);
    const { code, err } = await context.summarize([]);
    expect(code).toBe(2);
    expect(err).toMatch(/sea-ice\.summary\.each\.filter: [\s\S]*Naem/);
  });

  it('--each writes once about each product received in a time range', async () => {
    const context = await createSummaryContext();
    const some = await context.summarize(['--each', '--since', '2h', '--limit', '2', '--json']);
    expect(some).toMatchObject({ code: 0, err: '2 written.\n' });
    const rows = linesOf(some.out);
    expect(rows.map((row) => Object.keys(row))).toEqual([[...summaryFields], [...summaryFields]]);
    expect(rows.map(({ productId }) => productId).toSorted()).toEqual([guid('4'), guid('5')]);
    expect(rows[0]).toMatchObject({ kind: 'product', model, verified: true, state: 'done' });

    const all = await context.summarize(['--each', '--subscription', 'sea-ice']);
    expect(all.err).toBe('3 written, 2 already present.\n');
    for (const { name } of samples) expect(all.out).toContain(name);
    const none = {
      code: 0,
      out: '',
      err: 'Nothing to summarize: no matching product was received in this time range.\n',
    };
    for (const words of [[], ['--dry-run']]) {
      const early = ['--each', '--until', '90m', '--limit', '1'];
      expect(await context.summarize([...early, ...words])).toMatchObject(none);
    }
    expect(context.sandbox.inference.totals()).toMatchObject({ distinct: 5, repeated: 0 });
  });

  it('--each --filter selects products of any time, or of the given time range', async () => {
    const context = await createSummaryContext();
    const later = () => Date.UTC(2026, 4, 20) * 1000;
    const words = ['--each', '--filter', "startswith(Name,'S2')", '--dry-run', '--json'];
    const namesIn = async (...more: string[]) =>
      linesOf((await context.summarize([...words, ...more], { nowUs: later })).out).map(
        ({ productId }) => productId,
      );
    expect(await namesIn()).toEqual([guid('2'), guid('1')]);
    expect(await namesIn('--since', '24h')).toEqual([]);
    expect(await namesIn('--since', '30d')).toEqual([guid('5'), guid('2'), guid('1')]);
  });

  it('--digest writes one text for each complete window', async () => {
    const context = await createSummaryContext();
    const last = await context.summarize(['--digest', 'hour']);
    expect(last).toMatchObject({ code: 0, err: '1 written.\n' });
    expect(last.out).toMatch(
      /^digest of all subscriptions, 2026-05-02 11:00 to 2026-05-02 12:00 UTC {2}written\n {2}.*5 products/,
    );
    // The windows do not depend on the minute of the run or on --since.
    const minutes = (count: number) => () => nowUs + count * 60_000_000;
    const later = await context.summarize(['--digest', 'hour', '--since', '150m'], {
      nowUs: minutes(20),
    });
    expect(later.err).toBe(
      'The hour from 2026-05-02 12:00 UTC is not complete yet and was skipped.\n1 already present, 2 without content.\n',
    );
    const empty = ['--digest', 'hour', '--since', '5h', '--until', '2h'];
    expect((await context.summarize(empty)).err).toBe(
      'No products to summarize in these 3 time spans.\n',
    );
  });

  it('--digest uses the current window when there is nothing before it', async () => {
    const context = await createSummaryContext();
    const part = ['--filter', "Collection/Name eq 'SENTINEL-1'", '--subscription', 'sea-ice'];
    const { err } = await context.summarize([
      '--digest',
      'day',
      ...part,
      '--since',
      '24h',
      '--json',
    ]);
    expect(err).toBe(
      'No complete day has products. The digest covers 2026-05-02 00:00 UTC until now.\n1 written, 1 without content.\n',
    );
    expect(await context.summaries('--kind', 'digest', '--limit', '1')).toMatchObject([
      {
        kind: 'digest',
        productId: null,
        text: expect.stringContaining('1 product'),
        subscription: 'sea-ice',
        receivedFrom: '2026-05-02T00:00:00.000000Z',
        receivedUntil: '2026-05-02T12:00:00.000000Z',
        filter: "Collection/Name eq 'SENTINEL-1'",
      },
    ]);
    const look = await context.summarize(['--digest', 'week', '--dry-run']);
    expect(look.out).toMatch(
      /^# digest of all subscriptions, 2026-04-27 00:00 to 2026-05-02 12:00 /,
    );
    expect(look.err).toMatch(/\n1 request, .* 1 without content\./);
  });

  it('distinguishes a misspelled subscription from a time without notifications', async () => {
    const context = await createSummaryContext();
    writeFileSync(
      join(context.workingDir, 'earshot.config.ts'),
      "export default { subscriptions: { alps: {}, 'sea-ice': {} } };\n",
    );
    for (const words of [['--each'], ['--digest', 'day']]) {
      expect(await context.summarize([...words, '--subscription', 'nope'])).toMatchObject({
        code: 0,
        out: '',
        err: 'No notification was ever received for a subscription "nope". Known names: alps, sea-ice.\n',
      });
    }
    expect(await context.summaries()).toEqual([]);
  });

  it('requests a text with invented facts once more, and marks it as unverified if they remain', async () => {
    const context = await createSummaryContext({ next: { inventedNumber: 3 } });
    const words = ['--each', '--filter', "startswith(Name,'S2')"];
    const { code, out, err } = await context.summarize(words);
    expect({ code, err }).toEqual({ code: 0, err: '1 written, 1 written, but not verified.\n' });
    expect(out).toMatch(/written, but not verified\n.*4711 bands\.\n {2}Not in the facts: 4711\b/);
    expect(context.sent).toHaveLength(4);
    expect(await context.summaries('--unverified')).toMatchObject([
      { verified: false, doubts: [expect.stringContaining('4711')] },
    ]);
  });

  it('makes the texts of the facts alone when no model is configured', async () => {
    const context = await createSummaryContext();
    const env = { EARSHOT_INFERENCE_API_KEY: '', EARSHOT_INFERENCE_MODEL: '' };
    const look = await context.summarize(['--each', '--dry-run', '--limit', '1'], { env });
    expect(look.out).toContain('"model": "<vendor>/<model_name>"');
    expect(look.err).toContain('from the facts alone, without a request');
    const { code, out, err } = await context.summarize(['--each', '--limit', '2'], { env });
    expect(code).toBe(0);
    expect(out).toMatch(/ {2}generated from the facts alone\n {2}This Sentinel-2A product holds/);
    expect(err).toMatch(
      /^2 generated from the facts alone\. No model is configured\. .*EARSHOT_INFERENCE_/,
    );
    expect(await context.summaries()).toMatchObject([{ model: null, verified: true }, {}]);
    expect(context.sent).toEqual([]);
  });

  it('--print-prompt needs no configuration', async () => {
    const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot', EARSHOT_INFERENCE_MODEL: 'x' };
    const { code, out, err } = await runCommand(['summarize', '--print-prompt'], { env });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(
      /^# product\nYou write short[\s\S]*\n\n# digest\nYou write short[\s\S]*\.\n$/,
    );
  });
});
