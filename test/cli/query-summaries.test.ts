/** `earshot query summaries`: every format and filter, and harmful texts. */
import { stripVTControlCharacters, styleText } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { summaryFields } from '../../src/domain/summaries.ts';
import { nowUs, printed, printedJson } from './fake-io.ts';
import { createContext, filledContext } from './filled-store.ts';
import { guid } from './product-samples.ts';
import { hostile, putSummaries, steering } from './summary-samples.ts';

const scope = {
  fromUs: nowUs - 12 * 3_600_000_000,
  untilUs: nowUs,
  subscription: 'alps',
  collection: 'SENTINEL-2',
  filter: null,
  area: null,
};

const digest = { kind: 'digest', subject: 'd', productId: null, productName: null, scope } as const;

const unchecked = { validateStream: false };

// These tests only read.
const context = createContext(afterAll);
await putSummaries(context.dataDir, [
  { text: { text: 'First.' } },
  { text: { text: 'Second, of 4711 bands.', verified: false, doubts: ['4711', 'Ulm'] } },
  { text: { text: 'Third.', model: null } },
  { outcome: { outcome: 'failed', error: 'The answer is empty.', template: 'From the facts.' } },
  { job: { ...digest, subscription: 'alps' }, text: { text: 'Sixth.' } },
  { waits: true },
]);

const query = (...words: string[]) => context.earshot(['query', 'summaries', ...words]);

describe('the summaries in a table', () => {
  it('are printed below their subject, with their problems', async () => {
    const out = await printed(query());
    expect(out.split('\n')).toEqual([
      'name of 6  #6 queued',
      '',
      'digest of alps, 2026-05-02 00:00 to 2026-05-02 12:00 UTC, SENTINEL-2  #5 done',
      '  Sixth.',
      '',
      'name of 4  #4 failed, without a model',
      '  From the facts.',
      '  The answer is empty.',
      '',
      'name of 3  #3 done, without a model',
      '  Third.',
      '',
      'name of 2  #2 done, not verified',
      '  Second, of 4711 bands.',
      '  Not in the facts: 4711, Ulm',
      '',
      'name of 1  #1 done',
      '  First.',
      '',
      '',
    ]);
  });

  it('fit a terminal, with a coloured status', async () => {
    const own = await filledContext();
    const text = 'This product of Sentinel-2A holds reflectance over parts of Italy and Slovenia.';
    const outcome = { outcome: 'failed', error: `Why: ${text}`, template: text } as const;
    const filter = "startswith(Name,'S2')";
    await putSummaries(own.dataDir, [
      { text: { text } },
      { outcome },
      { text: { text: 'Of 7 bands.', verified: false, doubts: ['7'] } },
      {
        job: {
          ...digest,
          subscription: null,
          scope: { ...scope, subscription: null, collection: null, filter },
        },
      },
    ]);
    const argv = ['query', 'summaries'];
    const { out } = await own.earshot(argv, { isTTY: true, columns: 50 });
    const plain = stripVTControlCharacters(out);
    const texts = plain.split('\n').filter((line) => line.startsWith('  '));
    expect(texts.slice(-2)).toEqual([
      '  This product of Sentinel-2A holds reflectance',
      '  over parts of Italy and Slovenia.',
    ]);
    expect(Math.max(...texts.map((line) => line.length))).toBeLessThanOrEqual(50);
    expect(out).toContain(styleText('red', 'failed, without a model', unchecked));
    expect(out).toContain(styleText('yellow', 'done, not verified', unchecked));
    expect(plain).toContain(
      "digest of all subscriptions, 2026-05-02 00:00 to 2026-05-02 12:00 UTC, products that match startswith(Name,'S2')  #4 ",
    );
    expect((await own.earshot(argv)).out).toContain(`\n  ${text}\n`);
  });

  it.each([
    ['--state asking', 'No requests in progress.\n'],
    ['--state dropped', 'No dropped summaries.\n'],
    ['--state failed --kind digest', 'No failed summaries.\n'],
    ['--unverified --kind digest', 'No unverified summary matches.\n'],
  ])('%s: no summary matches, and the exit code is 0', async (line, err) => {
    expect(await query(...line.split(' '))).toMatchObject({ code: 0, out: '', err });
  });

  it('are printed in pages', async () => {
    const first = await query('--limit', '4');
    expect(first.err).toBe('4 rows. Next page: --before 3\n');
    const rest = await query('--limit', '4', '--before', '3');
    expect(rest.out.match(/^\S.*$/gm)).toEqual([
      'name of 2  #2 done, not verified',
      'name of 1  #1 done',
    ]);
    expect(rest.err).toBe('');
    const none = await query('--before', '1');
    expect(none).toMatchObject({ code: 0, out: '' });
    expect(none.err).toMatch(/^No summary matches\. .*EARSHOT_SUMMARY.*`earshot summarize --each/);
  });
});

describe('the summaries for programs', () => {
  const second = {
    kind: 'product',
    productId: guid('2'),
    productName: 'name of 2',
    text: 'Second, of 4711 bands.',
    model: 'a/b',
    verified: false,
    createdAt: '2026-05-02T08:00:00.000000Z',
    error: null,
    id: 2,
    state: 'done',
    subscription: 'sea-ice',
    doubts: ['4711', 'Ulm'],
    attempts: 0,
    requestedAt: '2026-05-02T08:00:00.000000Z',
    nextTryAt: null,
    receivedFrom: null,
    receivedUntil: null,
    collection: null,
    area: null,
    filter: null,
  };

  it('are objects as json and ndjson, with the fixed fields first', async () => {
    const rows = await printedJson(query('--json'));
    expect(rows).toHaveLength(6);
    expect(rows[4]).toEqual(second);
    expect(Object.keys(rows[4])).toEqual([...summaryFields]);
    expect(Object.keys(rows[4]).slice(0, 8).join(' ')).toBe(
      'kind productId productName text model verified createdAt error',
    );
    expect(rows[0]).toMatchObject({ text: null, model: null, verified: null, createdAt: null });
    expect(rows[1]).toMatchObject({ kind: 'digest', receivedUntil: '2026-05-02T12:00:00.000000Z' });
    const lines = (await query('--output', 'ndjson')).out.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(rows);
    expect((await query('--json', '--before', '1')).out).toBe('[]\n');
  });

  it('are columns as csv', async () => {
    const lines = (await query('--output', 'csv', '--before', '3')).out.split('\n');
    expect(lines).toEqual([
      summaryFields.join(','),
      Object.values({ ...second, text: '"Second, of 4711 bands."', doubts: '4711; Ulm' }).join(','),
      expect.stringContaining(`product,${guid('1')},name of 1,First.,a/b,true,`),
      '',
    ]);
  });

  it.each([
    ['--kind digest', [5]],
    ['--state failed', [4]],
    ['--state waiting', [6]],
    ['--unverified', [2]],
    ['--subscription alps', [5]],
    [`--product-id ${guid('3')}`, [3]],
    ['--since 4h --until 2h', [3, 2]],
    ['--kind product --before 4 --limit 2', [3, 2]],
    ['--subscription nobody', []],
  ])('%s selects %j', async (line, ids) => {
    const rows = await context.rows(['query', 'summaries', ...line.split(' ')]);
    expect(rows.map(({ id }) => id)).toEqual(ids);
  });
});

describe('harmful texts, names and errors', () => {
  it('are printed without control characters and formulas', async () => {
    const own = await filledContext();
    const job = { productName: hostile, subscription: hostile };
    await putSummaries(own.dataDir, [
      { job, text: { text: hostile, verified: false, doubts: [hostile] } },
      { job, outcome: { outcome: 'failed', error: hostile, template: hostile } },
    ]);
    for (const form of ['table', 'json', 'ndjson', 'csv']) {
      const argv = ['query', 'summaries', '--output', form];
      const onTerminal = await own.earshot(argv, { isTTY: true, env: { NO_COLOR: '1' } });
      expect({ form, code: onTerminal.code }).toEqual({ form, code: 0 });
      expect(onTerminal.out + onTerminal.err).not.toMatch(steering);
      const { out } = await own.earshot(argv);
      if (form === 'table') expect(out).not.toMatch(steering);
      if (form === 'csv') expect(out.match(/"'=1\+1 /g)).toHaveLength(8);
      if (form.endsWith('json')) {
        const lines = out.trimEnd().split('\n');
        const rows = form === 'json' ? JSON.parse(out) : lines.map((line) => JSON.parse(line));
        expect(rows).toMatchObject([
          { error: hostile, text: hostile },
          { text: hostile, doubts: [hostile] },
        ]);
      }
    }
  });
});
