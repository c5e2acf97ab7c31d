/** `earshot query summaries`: every format and filter, and harmful texts. */

import { afterAll, expect, it } from 'vitest';
import { summaryFields } from '../../../src/core/terms/read-models.ts';
import type { NewSummaryJob, SummaryOutcome } from '../../../src/features/summary/terms.ts';
import { nowUs, printed, printedJson } from '../../helpers/fake-io.ts';
import { createContext, filledContext, hourUs, withStore } from '../../helpers/filled-store.ts';
import { guid } from '../products/product-samples.ts';
import { doneWith, productJob } from './summary-jobs.ts';

/** Escape sequences of both kinds, direction marks, markup, a formula, a line break, quotes. */
const hostile = '=1+1 \u001b[2J\u009b31m\u202e<b>&"quoted", \nnext\u2028line\t\u0007';

/** Characters that must not reach a terminal. */
const steering = /[\p{Cc}\u202e\u2028](?<!\n)/u;

interface SampleSummary {
  job?: Partial<NewSummaryJob>;
  /** Queued without one. */
  result?: SummaryOutcome;
}

/** Enqueues each summary, an hour apart from 07:00 on, and settles it. */
function putSummaries(dataDir: string, all: readonly SampleSummary[]): Promise<void> {
  return withStore(dataDir, async ({ summaries }) => {
    for (const [i, { job, result }] of all.entries()) {
      const [productId, atUs] = [guid(`${i + 1}`), nowUs - (5 - i) * hourUs];
      const named = { subject: productId, productId, productName: `name of ${i + 1}` };
      const queued = productJob(1, { ...named, subscription: 'sea-ice', dueAtUs: atUs, ...job });
      const { ids } = await summaries.enqueue({ jobs: [queued], waitingMax: 100, atUs });
      const id = ids[0] ?? 0;
      if (result !== undefined) await summaries.settle({ job: { id, revision: 1 }, result });
    }
  });
}

const filter = "startswith(Name,'S2')";
const span = { fromUs: nowUs - 12 * hourUs, untilUs: nowUs };
const scope = { ...span, subscription: 'alps', filter };
const digest = { kind: 'digest', productId: null, productName: null, scope } as const;
const template = doneWith('From the facts.', { model: null });
const reason = 'The answer of the model was refused: it is empty.';
const waiting = {
  outcome: 'postponed',
  by: 'service',
  dueAtUs: nowUs + hourUs,
  reason: 'Not reached.',
} as const;

// These tests only read.
const context = createContext(afterAll);
await putSummaries(context.dataDir, [
  { result: doneWith('First.') },
  { result: { ...template, reason } },
  { result: { ...waiting, text: template.text } },
  { job: { ...digest, subscription: 'alps' }, result: doneWith('Fourth.') },
  {},
]);

const argv = ['query', 'summaries'];
const query = (...words: string[]) => context.earshot([...argv, ...words]);

it('prints summaries below their subject, with their state and reason', async () => {
  const out = await printed(query());
  expect(out.split('\n')).toEqual([
    'name of 5  #5 waiting, due 2026-05-02 11:00 UTC',
    '',
    `digest of alps, 2026-05-02 00:00 to 2026-05-02 12:00 UTC, products that match ${filter}  #4 by a/b`,
    '  Fourth.',
    '',
    'name of 3  #3 waiting, due 2026-05-02 13:00 UTC',
    '  From the facts.',
    '  Not reached.',
    '',
    'name of 2  #2 from the template',
    '  From the facts.',
    `  ${reason}`,
    '',
    'name of 1  #1 by a/b',
    '  First.',
    '',
    '',
  ]);
});

it('prints pages, and says what creates summaries', async () => {
  const first = await query('--limit', '3');
  expect(first.err).toBe('3 rows. Next page: --before 3\n');
  const rest = await query('--limit', '3', '--before', '3');
  expect(rest.out.match(/#\d/g)).toEqual(['#2', '#1']);
  const none = await query('--before', '1');
  expect(none).toMatchObject({ code: 0, out: '' });
  expect(none.err).toMatch(/^No summary matches\. .*EARSHOT_SUMMARY.*`earshot summarize --each/);
});

it('prints every field as json, ndjson and csv', async () => {
  const rows = await printedJson(query('--json'));
  const oldest = {
    ...{ kind: 'product', productId: guid('1'), productName: 'name of 1', text: 'First.' },
    ...{ model: 'a/b', facts: { mission: 'Sentinel-2A' } },
    ...{ createdAt: '2026-11-18T11:06:40.000001Z', reason: null, id: 1, state: 'done' },
    ...{ subscription: 'sea-ice', requestedAt: '2026-05-02T07:00:00.000000Z', nextTryAt: null },
    ...{ receivedFrom: null, receivedUntil: null, filter: null },
  };
  expect(rows.at(-1)).toEqual(oldest);
  expect(Object.keys(rows[4])).toEqual([...summaryFields]);
  expect(rows[0]).toMatchObject({ text: null, model: null, facts: null, createdAt: null });
  expect(rows[1]).toMatchObject({ kind: 'digest', receivedUntil: '2026-05-02T12:00:00.000000Z' });
  expect(rows[2]).toMatchObject({ state: 'waiting', nextTryAt: '2026-05-02T13:00:00.000000Z' });
  expect(await context.rows(argv)).toEqual(rows);
  const lines = (await query('--output', 'csv', '--before', '2')).out.split('\n');
  const facts = '"{""mission"":""Sentinel-2A""}"';
  expect(lines).toEqual([
    summaryFields.join(','),
    Object.values({ ...oldest, facts }).join(','),
    '',
  ]);
});

it.each([
  ['--kind digest', [4]],
  ['--state waiting', [5, 3]],
  ['--subscription alps', [4]],
  [`--product-id ${guid('3')}`, [3]],
  ['--since 4h --until 2h', [3, 2]],
  ['--kind product --before 4 --limit 2', [3, 2]],
])('%s selects %j', async (line, ids) => {
  const rows = await context.rows([...argv, ...line.split(' ')]);
  expect(rows.map(({ id }) => id)).toEqual(ids);
});

it.each(['table', 'json', 'ndjson', 'csv'])(
  'prints harmful texts as %s without control characters and formulas',
  async (form) => {
    const own = await filledContext();
    const job = { productName: hostile, subscription: hostile };
    await putSummaries(own.dataDir, [{ job, result: { ...doneWith(hostile), reason: hostile } }]);
    const words = [...argv, '--output', form];
    const terminal = await own.earshot(words, { isTTY: true, env: { NO_COLOR: '1' } });
    expect(terminal.code).toBe(0);
    expect(terminal.out + terminal.err).not.toMatch(steering);
    const { out } = await own.earshot(words);
    if (form === 'table') expect(out).not.toMatch(steering);
    if (form === 'csv') expect(out.match(/"'=1\+1 /g)).toHaveLength(4);
    if (form === 'ndjson')
      expect(JSON.parse(out)).toMatchObject({ reason: hostile, text: hostile });
  },
);
