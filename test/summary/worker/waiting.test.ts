/** How long a job waits: for its window, after a clock that ran ahead, behind a backlog, until it is dropped. */
import { describe, expect, it } from 'vitest';
import { startSummaryWorker } from '../../../src/summary/worker/run-summaries.ts';
import {
  dayUs,
  each,
  hourUs,
  minuteUs,
  openFollowing,
  productOf,
  rules,
  secondUs,
  startUs,
} from './worker-world.ts';

const mondayUs = Date.UTC(2026, 3, 27) * 1000;
const weekUs = 7 * dayUs;

describe('a digest of a week', () => {
  const weekly = async () => {
    const worker = await openFollowing({ clock: { us: mondayUs + hourUs } });
    await worker.tell([productOf(1)], { receivedAtUs: mondayUs + secondUs });
    const digest = { kind: 'digest', window: 'week', per: 'all', areas: [] } as const;
    await worker.collect(rules({}, digest));
    worker.clock.us = mondayUs + weekUs + minuteUs - 1;
    expect(await worker.work()).toEqual({ end: 'nothing due' });
    return worker;
  };

  it('whose one notification came at its beginning is written', async () => {
    const worker = await weekly();
    worker.clock.us += 1;
    await worker.work();
    expect(await worker.rows()).toMatchObject([
      { state: 'done', text: { text: expect.stringContaining('1 product arrived') } },
    ]);
  });

  it('is given up 7 days after its end, and not before', async () => {
    const worker = await weekly();
    worker.context.budget = { ...worker.context.budget, requestsPerDay: 0 };
    worker.clock.us = mondayUs + 2 * weekUs;
    expect(await worker.work()).toMatchObject({ end: 'budget' });
    worker.clock.us += dayUs;
    await worker.work();
    expect(await worker.rows()).toMatchObject([
      { state: 'dropped', error: expect.stringContaining('waited for 7 days') },
    ]);
  });
});

describe('a clock that ran ahead', () => {
  it('strands nothing once it is right again', async () => {
    const worker = await openFollowing({ clock: { us: startUs + 300 * dayUs } });
    await worker.tell([productOf(1), productOf(2), productOf(3)]);
    const hourly = { kind: 'digest', window: 'hour', per: 'all', areas: [] } as const;
    await worker.collect(rules({ alps: each }));
    await worker.tell([productOf(4)], { subscription: 'other' });
    await worker.collect(rules({ other: hourly }));
    const nowUs = worker.clock.us;
    const [dead] = await worker.summaries.due({ nowUs, limit: 1 });
    if (dead === undefined) throw new Error('no job');
    const { budget } = worker.context;
    const leaseUntilUs = nowUs + 150 * secondUs;
    await worker.summaries.claim({
      job: dead,
      model: 'a/b',
      tokens: 1,
      budget,
      leaseUntilUs,
      nowUs,
    });
    worker.clock.us = startUs;
    expect(await worker.work()).toEqual({ end: 'nothing due' });
    expect(await worker.summaries.counts()).toMatchObject({ done: 4, waiting: 0, asking: 0 });
  });
});

describe('a backlog', () => {
  it('is read round after round, without the pause that follows the last one', async () => {
    const worker = await openFollowing({ client: null });
    await worker.tell(Array.from({ length: 170 }, (_, i) => productOf(i)));
    await worker.index();
    worker.context.budget = { ...worker.context.budget, requestsPerHour: 0 };
    const running = startSummaryWorker(worker.context, rules({}, each), { pollMs: 600_000 });
    await expect.poll(() => worker.store.cursor('summaries'), { timeout: 10_000 }).toBe(170);
    await running.stop();
    expect(await worker.rows()).toHaveLength(170);
  });
});
