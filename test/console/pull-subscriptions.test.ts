/** Pull subscriptions in `/api/subscriptions`, on the page `/subscriptions`, and in the metrics. */
import { describe, expect, it } from 'vitest';
import { createMetrics } from '../../src/console/metrics/metrics.ts';
import type { DeliveryMark } from '../../src/domain/account.ts';
import type { QueueState } from '../../src/domain/pull-queue.ts';
import type { Status } from '../../src/domain/status.ts';
import { queueState } from '../domain/sample-queue.ts';
import { log, openConsole } from './console-context.ts';
import { readScrape } from './metric-samples.ts';
import { filledOperations, registration, seenUs } from './operation-sample.ts';
import { emptyStatus, sampleStatus } from './status-sample.ts';

const hourUs = 3_600_000_000;
/** Time of the status. */
const { atUs } = sampleStatus();

/** A queue with 40 entries, the oldest 30 hours old, that was read just now. */
const queue = (fields: Partial<QueueState> = {}): QueueState =>
  queueState({
    ...{ subscription: 'andes', subscriptionId: 'pull-id', length: 40, entriesPerHour: 12.4 },
    ...{ oldestAtUs: atUs - 30 * hourUs, emptiedAtUs: atUs - 31 * hourUs, readAtUs: atUs },
    ...{ entries: 7, requests: 9, ...fields },
  });

const empty = { length: 0, oldestAtUs: null, emptiedAtUs: atUs, entriesPerHour: null };
const unread = { ...empty, length: null, emptiedAtUs: null, readAtUs: null, requests: 0 };

/** Opens a console with the push subscription `alps` and the pull subscription `andes`. */
async function openPull(
  queues: readonly QueueState[] = [queue()],
  { marks = [], status = {} }: { marks?: DeliveryMark[]; status?: Partial<Status> } = {},
) {
  const { administration, ...operations } = filledOperations();
  const pulled = {
    ...registration,
    name: 'andes',
    type: 'pull' as const,
    subscriptionId: 'pull-id',
  };
  const known = {
    registrations: async () => [registration, { ...pulled, changedByPerson: false }],
  };
  const deliveryMarks = async () => [...(await administration.deliveryMarks()), ...marks];
  const current: Status = { ...sampleStatus(), queues: [...queues], ...status };
  const metrics = createMetrics(log);
  const { get } = await openConsole({
    ...{ ...operations, metrics, status: async () => current },
    administration: { ...administration, ...known, deliveryMarks },
  });
  const row = async (name: string) => {
    const { subscriptions } = (await get('/api/subscriptions')).json;
    return subscriptions.find((one: { name: string }) => one.name === name);
  };
  const page = async (path = '/subscriptions?subscription=andes') => textOf((await get(path)).text);
  const samples = async () => readScrape((await get('/metrics')).text).samples;
  return { get, row, page, samples };
}

/** Returns the text of the main part of a page. */
function textOf(page: string): string {
  const main = page.slice(page.indexOf('<main'));
  return main
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&#39;', "'")
    .replaceAll(/\s+/g, ' ');
}

describe('/api/subscriptions', () => {
  it('has type and queue of a pull subscription, and no path', async () => {
    const { row } = await openPull();
    expect(await row('andes')).toMatchObject({
      ...{ id: 'pull-id', type: 'pull', path: null, senders: [] },
      queue: {
        ...{ length: 40, lengthMax: 100_000, entriesPerHour: 12.4, failure: null },
        oldestAt: '2026-05-01T06:00:00.000000Z',
        emptiedAt: '2026-05-01T05:00:00.000000Z',
        readAt: '2026-05-02T12:00:00.000000Z',
        otherReaderAt: null,
      },
    });
    expect(await row('alps')).toMatchObject({
      type: 'push',
      path: '/notifications/alps',
      queue: null,
    });
  });

  it('has no queue before the first read', async () => {
    const { row } = await openPull([]);
    expect(await row('andes')).toMatchObject({ type: 'pull', queue: null });
  });

  it('has nulls for what is not known of a queue, the failure, and another reader', async () => {
    const trouble = { failure: 'It is down.', failingSinceUs: atUs };
    const { row } = await openPull([
      queue({ ...unread, ...trouble, otherReader: { atUs: seenUs, entries: 3 } }),
    ]);
    expect((await row('andes')).queue).toEqual({
      ...{ length: null, lengthMax: 100_000, oldestAt: null, emptiedAt: null, readAt: null },
      ...{ entriesPerHour: null, failure: 'It is down.' },
      otherReaderAt: '2026-05-01T00:00:00.000000Z',
    });
  });

  it('counts reading as no user name', async () => {
    const marks = [{ subscription: 'andes', username: '', lastAtUs: seenUs }];
    const { row } = await openPull([queue()], { marks });
    expect((await row('andes')).senders).toEqual([]);
  });
});

describe('the page /subscriptions', () => {
  it('shows type and queue of a pull subscription, without a URL path and credentials', async () => {
    const { page } = await openPull();
    const text = await page();
    expect(text).toContain(' type pull ');
    expect(text).toContain('unread entries 40 of at most 100,000');
    expect(text).toContain('oldest unread entry 30 h ago');
    expect(text).toMatch(/last read to the end 2026-05-01 05:00:00/);
    expect(text).toContain('entries per hour 12');
    expect(text).toContain('catalogue id pull-id');
    expect(text).not.toMatch(/URL path|credentials (sent|not known)|last failure|another reader/);
  });

  it('shows a push subscription with its URL path and credentials, and without a queue', async () => {
    const { page } = await openPull();
    const text = await page('/subscriptions?subscription=alps');
    expect(text).toContain(' type push ');
    expect(text).toMatch(/URL path \/notifications\/alps .*credentials new/);
    expect(text).not.toContain('unread entries');
  });

  it('shows an empty queue without an age, and one that was not read yet', async () => {
    const text = await (await openPull([queue(empty)])).page();
    expect(text).toContain('unread entries 0 of at most 100,000');
    expect(text).not.toContain('oldest unread entry');
    const before = await (await openPull([queue(unread)])).page();
    expect(before).toContain('unread entries not known yet');
    expect(await (await openPull([])).page()).not.toContain('unread entries');
  });

  it('shows the failure of a queue as text, and another reader', async () => {
    const failure = '<b>down</b>\u001b[0m, run `earshot doctor`';
    const other = { otherReader: { atUs: seenUs, entries: 3 } };
    const { get, page } = await openPull([queue({ failure, failingSinceUs: atUs, ...other })]);
    expect(await page()).toMatch(
      /last failure .*earshot doctor.* another reader 2026-05-01 00:00:00/,
    );
    const source = (await get('/subscriptions')).text;
    expect(source).not.toContain('<b>down</b>');
    expect(source).not.toContain('\u001b');
    expect(source).toContain('&lt;b&gt;down');
  });

  it('has no panel about the endpoint when the receiver only reads queues', async () => {
    const { page } = await openPull([queue()], { status: { hasEndpoint: false } });
    expect(await page()).not.toContain('Endpoint of all subscriptions');
    expect(await (await openPull()).page()).toContain('Endpoint of all subscriptions');
  });
});

describe('the metrics earshot_pull_*', () => {
  type Samples = ReturnType<typeof readScrape>['samples'];
  const pulled = (samples: Samples) =>
    samples
      .filter(({ name }) => name.startsWith('earshot_pull_'))
      .map(({ name, labels, value }) => [
        name.replace('earshot_pull_', ''),
        labels.subscription,
        value,
      ]);

  it('have the values of each queue, estimated since the last answer', async () => {
    const second = queue({ ...empty, subscription: 'urals', failure: 'It is down.' });
    const first = queue({ readAtUs: atUs - 10 * hourUs, entriesPerHour: 5 });
    const { samples } = await openPull([first, second]);
    expect(pulled(await samples())).toEqual([
      ...[
        ['queue_entries', 'andes', 90],
        ['queue_entries', 'urals', 0],
      ],
      ...[
        ['queue_entries_max', 'andes', 100_000],
        ['queue_entries_max', 'urals', 100_000],
      ],
      ...[
        ['oldest_entry_age_seconds', 'andes', 108_000],
        ['oldest_entry_age_seconds', 'urals', 0],
      ],
      ...[
        ['failing', 'andes', 0],
        ['failing', 'urals', 1],
      ],
      ['last_read_timestamp_seconds', 'andes', atUs / 1e6 - 36_000],
      ['last_read_timestamp_seconds', 'urals', atUs / 1e6],
      ...[
        ['requests', 'andes', 9],
        ['requests', 'urals', 9],
      ],
    ]);
  });

  it('omit what is not known', async () => {
    const { samples } = await openPull([queue(unread)]);
    const names = pulled(await samples()).map(([name]) => name);
    expect(names).toEqual(['queue_entries_max', 'failing', 'requests']);
  });

  it('are absent without a pull subscription', async () => {
    const { samples } = await openPull([], { status: emptyStatus() });
    expect(pulled(await samples())).toEqual([]);
  });
});
