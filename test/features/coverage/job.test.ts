import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { loadConfig } from '../../../src/core/config/config.ts';
import { formatDateUs } from '../../../src/core/terms/dates.ts';
import { notificationDelayUs } from '../../../src/core/terms/subscription.ts';
import {
  createReconcileRounds,
  type RoundOutcome,
  startReconcile,
} from '../../../src/features/coverage/job.ts';
import { reconcileSections } from '../../../src/features/coverage/settings.ts';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../../src/features/products/index-file/products.ts';
import { startCatalogue } from '../../admin/listing-set-up.ts';
import { registrationOf } from '../../admin/samples.ts';
import type { AnswerParts } from '../../core/http/answering-server.ts';
import { delivery } from '../../helpers/deliveries.ts';
import { recordingLog } from '../../helpers/recording-log.ts';
import { settings } from '../../helpers/settings.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';
import { hour, minute, t0 } from './set-up.ts';

const nowUs = t0 + 5 * hour + 50 * minute;

interface ContextOptions {
  /** Answers by a word in the subscription's filter; by default an empty result. */
  answers?: Record<string, AnswerParts>;
  /** A query with this word that covers this moment fails. */
  spoilt?: { word: string; us: number };
  /** Difference between our clock and the catalogue's, in microseconds. */
  aheadUs?: number;
  /** Date of the first event that the first subscriptions expect, by the catalogue's clock. */
  sinceUs?: number;
}

/** Two subscriptions, for products with the names A and B. */
async function openContext(options: ContextOptions = {}) {
  const { answers = {}, spoilt, aheadUs = 0, sinceUs = t0 } = options;
  const { store, dataDir } = await openSqliteStore();
  const products = openProducts(dataDir);
  onTestFinished(() => products.close());
  await catchUpIndex({ dataDir });
  const asked: string[] = [];
  const tops = new Set<string | null>();
  const catalogue = await startCatalogue({
    records: () => [],
    answer: (_, url) => {
      const filter = url.searchParams.get('$filter') ?? '';
      asked.push(filter);
      tops.add(url.searchParams.get('$top'));
      const isSpoilt = spoilt && filter.includes(spoilt.word) && isWithin(filter, spoilt.us);
      const name = Object.keys(answers).find((key) => filter.includes(key));
      const found = isSpoilt ? refused : (answers[name ?? ''] ?? { body: { value: [] } });
      return { ...found, headers: { Date: new Date(nowUs / 1_000).toUTCString() } };
    },
  });
  for (const name of ['a', 'b']) {
    const filter = `Name eq '${name.toUpperCase()}'`;
    const atUs = sinceUs + notificationDelayUs;
    const times = { activityAtUs: atUs, notifiedAtUs: atUs, runningSeenAtUs: atUs };
    const save = registrationOf({ name, filter, events: ['created', 'deleted'], ...times });
    await store.administration.commit({ save });
  }
  const { log, lines } = recordingLog();
  const env = {
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_CATALOGUE_URL: catalogue.url,
    EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: '60000',
  };
  const config = loadConfig({ settings, env, readFile: () => '' }, reconcileSections);
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const { signal } = stopping;
  const io = { nowUs: () => nowUs + aheadUs, random: () => 0, signal, fetch };
  const parts = { store, products, log };
  const logged = () => lines.map(({ fields, ...line }) => ({ ...fields, ...line }));
  const warnings = () => logged().filter(({ level }) => level === 'warn' || level === 'error');
  const coverage = () => store.completeness.coverage({ sinceUs: 0, untilUs: 2 * nowUs });
  return { store, dataDir, asked, tops, parts, config, io, stopping, logged, warnings, coverage };
}

/** Returns true if the window of a query covers this moment. */
function isWithin(filter: string, us: number): boolean {
  const [, since = '', until = ''] = / ge (\S+) and \S+ lt (\S+)/.exec(filter) ?? [];
  return us >= Date.parse(since) * 1_000 && us < Date.parse(until) * 1_000;
}

function roundsOf({ parts, config, io }: Awaited<ReturnType<typeof openContext>>) {
  return createReconcileRounds(parts, config, io, io.signal);
}

/** A redirect, which is not retried. */
const refused = { status: 302, body: {} };
/** Part of a query that covers the first hour. */
const fromT0 = ` ge ${new Date(t0 / 1_000).toISOString()}`;
const record = { Name: 'x', PublicationDate: formatDateUs(t0 + 5 * minute) };

describe('a round', () => {
  it('continues with the others when one kind of event cannot be compared, and logs which', async () => {
    const context = await openContext({ answers: { "'A') and PublicationDate": refused } });
    const round = roundsOf(context);
    const found: RoundOutcome[] = [await round()];
    expect(context.warnings()).toMatchObject([
      {
        ...{ level: 'warn', subscription: 'a', event: 'created' },
        reason: expect.stringContaining('302'),
        message: expect.stringContaining('failed to compare'),
      },
    ]);
    const compared = (await context.coverage()).map((one) => `${one.subscription} ${one.event}`);
    expect([...new Set(compared)]).toEqual(['a deleted', 'b created', 'b deleted']);
    expect([...context.tops]).toEqual(['400']);
    // Nothing else is due then.
    found.push(await round());
    expect(found).toEqual(['some', 'none']);
  });

  it('continues after an hour that cannot be compared, logs it, and retries it', async () => {
    const spoilt = { word: "'A') and PublicationDate", us: t0 + 2.5 * hour };
    const context = await openContext({ spoilt });
    const round = roundsOf(context);
    const interval = (from: number, to: number) =>
      [from, to].map((hours) => formatDateUs(t0 + hours * hour).replace('.000000', '')).join('/');
    const comparedHours = async () =>
      (await context.coverage())
        .filter(({ subscription, event }) => subscription === 'a' && event === 'created')
        .map(({ hourUs }) => (hourUs - t0) / hour);

    expect(await round()).toBe('some');
    // A failing page affects the hours before it, too, until they are queried separately.
    expect(await comparedHours()).toEqual([0, 3, 4]);
    const expected = { level: 'warn', subscription: 'a', event: 'created' };
    expect(context.warnings()).toMatchObject([{ ...expected, notCompared: [interval(1, 3)] }]);
    expect(await round()).toBe('some');
    expect(await comparedHours()).toEqual([0, 1, 3, 4]);
    expect(context.warnings()[1]).toMatchObject({ ...expected, notCompared: [interval(2, 3)] });
    expect(await round()).toBe('none');
    spoilt.us = 0;
    expect(await round()).toBe('all');
    expect(await comparedHours()).toEqual([0, 1, 2, 3, 4]);
  });

  it('fails at most five times per kind, and skips more hours each time', async () => {
    const sinceUs = t0 - 20 * hour;
    const context = await openContext({ sinceUs, answers: { "'B') and DeletionDate": refused } });
    expect(await roundsOf(context)()).toBe('some');
    const asked = context.asked.filter((filter) => filter.includes("'B') and DeletionDate"));
    const sinces = asked.map((filter) => Date.parse(/ ge (\S+)/.exec(filter)?.[1] ?? '') * 1_000);
    // The first is the early check of the last hour.
    expect(sinces.map((us) => (us - sinceUs) / hour)).toEqual([25, 0, 1, 3, 7]);
  });

  it('allows two failures per kind when the catalogue has stopped answering, five for the first', async () => {
    const answers: Record<string, AnswerParts> = { "'A')": refused, "'B') and Pub": refused };
    const context = await openContext({ sinceUs: t0 - 20 * hour, answers });
    const round = roundsOf(context);
    expect(await round()).toBe('some');
    answers[''] = refused;
    context.asked.length = 0;
    expect(await round()).toBe('none');
    const counts = new Map<string | undefined, number>();
    for (const filter of context.asked) {
      const kind = /'[AB]'\) and \w+/.exec(filter)?.[0];
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
    expect([...counts.values()]).toEqual([5, 2, 2]);
  });

  it('logs the numbers of unreadable and undecided records, and compares the hour', async () => {
    const nameless = { Id: 'x', DeletionDate: record.PublicationDate };
    const context = await openContext({
      answers: {
        [`'A') and PublicationDate${fromT0}`]: { body: { value: [record] } },
        "'A') and DeletionDate": { status: 400, body: { detail: 'Invalid field' } },
        "'B')": { body: { value: [] } },
        [`DeletionDate${fromT0}`]: { body: { value: [nameless] } },
      },
    });
    expect(await roundsOf(context)()).toBe('all');
    expect(context.warnings()).toMatchObject([
      { level: 'warn', subscription: 'a', event: 'created', unreadable: 1 },
      { level: 'warn', subscription: 'a', event: 'deleted', undecided: 1 },
    ]);
    expect(await context.coverage()).toHaveLength(2 * 2 * 5);
  });

  it.each([
    ['behind', -hour],
    ['ahead', hour],
  ])(
    'checks the time after the settled hours by the catalogue’s clock, when ours is an hour %s',
    async (_, aheadUs) => {
      const context = await openContext({ aheadUs });
      const round = roundsOf(context);
      // The first answer contains the time.
      await round();
      context.asked.length = 0;
      expect(await round()).toBe('all');
      const since = new Date((nowUs - 50 * minute) / 1_000).toISOString();
      expect(context.asked.filter((filter) => filter.includes(` ge ${since} `))).toHaveLength(4);
      // Nothing happened since then.
      context.asked.length = 0;
      await round();
      expect(context.asked).toEqual([]);
    },
  );

  it('logs how many entries of queues stay without a record, from the start on', async () => {
    const { parts, config, io, store, warnings } = await openContext();
    let ownNowUs = nowUs;
    const accepted = Promise.withResolvers<void>();
    const waiting = {
      ...parts.store,
      acquireLock: async (...args: Parameters<typeof store.acquireLock>) => {
        await accepted.promise;
        return store.acquireLock(...args);
      },
    };
    const ownIo = { ...io, nowUs: () => ownNowUs };
    const job = startReconcile({ ...parts, store: waiting }, config, ownIo, { firstMs: 0 });
    onTestFinished(job.stop);
    const entry = { SubscriptionEvent: 'created', ProductId: 'p1', AckId: 'a1' };
    const from = { source: 'pull', subscription: 'a', receivedAtUs: nowUs } as const;
    await store.accept(delivery(entry, from));
    ownNowUs += minute;
    accepted.resolve();
    const message = expect.stringContaining('without a record');
    await vi.waitFor(() => expect(warnings()).toMatchObject([{ entries: 1, message }]));
  });
});
