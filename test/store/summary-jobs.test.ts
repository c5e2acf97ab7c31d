import { describe, expect, it } from 'vitest';
import type { SummaryJob } from '../../src/domain/summaries.ts';
import { openLocalStore } from './local-store.ts';
import {
  atUs,
  claim,
  dayUs,
  enqueued,
  hourUs,
  key,
  modelText,
  productJob,
} from './summary-jobs.ts';

const claimed = { outcome: 'claimed', requestId: expect.any(Number) };
const superseded = { outcome: 'superseded' };

async function openJobs(count: number) {
  const { store, reopen } = await openLocalStore();
  const jobs = await enqueued(
    store.summaries,
    Array.from({ length: count }, (_, i) => productJob(i)),
  );
  const job = (number: number): SummaryJob => {
    const found = jobs[number];
    if (found === undefined) throw new Error(`no job ${number}`);
    return found;
  };
  return { summaries: store.summaries, reopen, job };
}

describe('claiming a job', () => {
  it('succeeds for one of many programs', async () => {
    const { summaries, job } = await openJobs(1);
    const answers = await Promise.all(Array.from({ length: 20 }, () => claim(summaries, job(0))));
    expect(answers.filter(({ outcome }) => outcome === 'claimed')).toHaveLength(1);
    expect(answers.filter(({ outcome }) => outcome === 'superseded')).toHaveLength(19);
    expect(await summaries.counts()).toMatchObject({ asking: 1, waiting: 0 });
    expect(await summaries.due({ nowUs: atUs, limit: 9 })).toEqual([]);
  });

  it('is refused when the job is done, dropped, not due, or requested again', async () => {
    const { summaries, job } = await openJobs(3);
    const text = { outcome: 'text', key: key(1), text: modelText('A text.') } as const;
    const error = 'It was slow.';
    const later = { counts: false, nextAttemptAtUs: atUs + 1, template: null, error } as const;
    const settled = [text, { outcome: 'withdrawn' }, { outcome: 'postponed', ...later }] as const;
    for (const [i, result] of settled.entries()) {
      await summaries.settle({ job: job(i), request: null, result, nowUs: atUs });
      expect(await claim(summaries, job(i))).toEqual(superseded);
    }
    const [requeued] = await enqueued(summaries, [productJob(2)]);
    expect(await claim(summaries, job(2), { nowUs: atUs + 1 })).toEqual(superseded);
    expect(await claim(summaries, requeued ?? job(2), { nowUs: atUs + 1 })).toEqual(claimed);
    expect(await summaries.spending(atUs + 1)).toMatchObject({ requestsLastHour: 1 });
  });

  it('of a subject requested again waits for the request in flight', async () => {
    const { summaries, job } = await openJobs(1);
    const one = await claim(summaries, job(0));
    if (one.outcome !== 'claimed') throw new Error(one.outcome);
    const [requeued] = await enqueued(summaries, [productJob(0)], { atUs: atUs + 1 });
    if (requeued === undefined) throw new Error('no job');
    expect(await claim(summaries, requeued, { nowUs: atUs + 1 })).toEqual(superseded);
    const text = { outcome: 'text', key: key(1), text: modelText('A text.') } as const;
    const request = { id: one.requestId, tokens: null };
    const ended = { job: job(0), request, result: text, nowUs: atUs + 2 };
    await summaries.settle(ended);
    expect(await claim(summaries, requeued, { nowUs: atUs + 2 })).toEqual(claimed);
    // A repeated report of the first request does not end the second claim.
    await summaries.settle({ ...ended, nowUs: atUs + 3 });
    expect(await claim(summaries, requeued, { nowUs: atUs + 3 })).toEqual(superseded);
  });

  it('of a subject requested again waits no longer than the lease', async () => {
    const { summaries, job } = await openJobs(1);
    await claim(summaries, job(0), { leaseUs: 100 });
    const [requeued] = await enqueued(summaries, [productJob(0)], { atUs: atUs + 1 });
    expect(requeued).toMatchObject({ revision: 2, dueAtUs: atUs + 100 });
    await claim(summaries, requeued ?? job(0), { nowUs: atUs + 100, leaseUs: 100 });
    const [latest] = await enqueued(summaries, [productJob(0)], { atUs: atUs + 200 });
    expect(latest).toMatchObject({ revision: 3, dueAtUs: atUs });
    expect(await claim(summaries, latest ?? job(0), { nowUs: atUs + 200 })).toEqual(claimed);
  });

  it('succeeds again when the lease has expired, and both requests count', async () => {
    const { summaries, job, reopen } = await openJobs(1);
    await claim(summaries, job(0), { leaseUs: 100 });
    expect(await summaries.nextDueAtUs()).toBe(atUs + 100);
    const again = (await reopen()).summaries;
    expect(await claim(again, job(0), { nowUs: atUs + 99 })).toEqual(superseded);
    expect(await again.due({ nowUs: atUs + 99, limit: 9 })).toEqual([]);
    const [due] = await again.due({ nowUs: atUs + 100, limit: 9 });
    expect(due).toMatchObject({ id: job(0).id, revision: 1, attempts: 0 });
    expect(await claim(again, job(0), { nowUs: atUs + 100 })).toEqual(claimed);
    const spent = { requestsLastHour: 2, requestsLastDay: 2, tokensLastDay: 200 };
    expect(await again.spending(atUs + 100)).toEqual(spent);
  });
});

describe('the request budget', () => {
  it('allows no more than the limit in any hour, even after a restart', async () => {
    const { summaries, job, reopen } = await openJobs(5);
    const limit = { requestsPerHour: 2 };
    expect(await claim(summaries, job(0), { ...limit, nowUs: atUs })).toEqual(claimed);
    expect(await claim(summaries, job(1), { ...limit, nowUs: atUs + 10 })).toEqual(claimed);
    const again = (await reopen()).summaries;
    const refused = { outcome: 'budget', limit: 'requestsPerHour', freeAtUs: atUs + hourUs };
    const justBefore = atUs + hourUs - 1;
    expect(await claim(again, job(2), { ...limit, nowUs: justBefore })).toEqual(refused);
    expect(await again.due({ nowUs: atUs, limit: 1 })).toMatchObject([{ id: job(2).id }]);
    expect(await claim(again, job(2), { ...limit, nowUs: atUs + hourUs })).toEqual(claimed);
    const next = { ...refused, freeAtUs: atUs + 10 + hourUs };
    expect(await claim(again, job(3), { ...limit, nowUs: atUs + hourUs })).toEqual(next);
    // A limit below the sent requests waits until enough of them have expired.
    const less = { requestsPerHour: 1, nowUs: atUs + hourUs };
    const longer = { ...refused, freeAtUs: atUs + 2 * hourUs };
    expect(await claim(again, job(3), less)).toEqual(longer);
  });

  it('counts a day as it counts an hour, and names the limit with the longest wait', async () => {
    const { summaries, job } = await openJobs(4);
    const limits = { requestsPerHour: 1, requestsPerDay: 2 };
    await claim(summaries, job(0), { ...limits, nowUs: atUs });
    await claim(summaries, job(1), { ...limits, nowUs: atUs + hourUs });
    const refused = { outcome: 'budget', limit: 'requestsPerDay', freeAtUs: atUs + dayUs };
    const ask = (nowUs: number) => claim(summaries, job(2), { ...limits, nowUs });
    expect(await ask(atUs + hourUs + 1)).toEqual(refused);
    expect(await ask(atUs + dayUs - 1)).toEqual(refused);
    expect(await ask(atUs + dayUs)).toEqual(claimed);
    const spent = { requestsLastHour: 1, requestsLastDay: 2, tokensLastDay: 200 };
    expect(await summaries.spending(atUs + dayUs)).toEqual(spent);
  });

  it('allows nothing with a limit of 0', async () => {
    const { summaries, job } = await openJobs(1);
    const windows = { requestsPerHour: hourUs, requestsPerDay: dayUs, tokensPerDay: dayUs };
    for (const [limit, windowUs] of Object.entries(windows)) {
      const refused = { outcome: 'budget', limit, freeAtUs: atUs + windowUs };
      expect(await claim(summaries, job(0), { [limit]: 0 })).toEqual(refused);
      const answer = await claim(summaries, job(0), { [limit]: 0, tokens: 0 });
      expect(answer).toEqual(refused);
    }
    const none = { requestsLastHour: 0, requestsLastDay: 0, tokensLastDay: 0 };
    expect(await summaries.spending(atUs)).toEqual(none);
  });

  it('counts requests dated by a fast clock as sent now', async () => {
    const { summaries, job } = await openJobs(3);
    const limit = { requestsPerHour: 1 };
    await claim(summaries, job(0), { ...limit, nowUs: atUs + 400 * dayUs });
    expect(await summaries.spending(atUs)).toMatchObject({ requestsLastHour: 1 });
    const refused = { outcome: 'budget', limit: 'requestsPerHour', freeAtUs: atUs + hourUs };
    expect(await claim(summaries, job(1), limit)).toEqual(refused);
    expect(await claim(summaries, job(1), { ...limit, nowUs: atUs + 9 })).toEqual(refused);
    expect(await claim(summaries, job(1), { ...limit, nowUs: atUs + hourUs })).toEqual(claimed);
  });

  it('accepts the largest limits', async () => {
    const { summaries, job } = await openJobs(2);
    const most = Number.MAX_SAFE_INTEGER;
    const limits = { requestsPerHour: most, requestsPerDay: most, tokensPerDay: most };
    expect(await claim(summaries, job(0), limits)).toEqual(claimed);
    expect(await claim(summaries, job(1), limits)).toEqual(claimed);
  });
});

describe('the token budget', () => {
  it('allows a claim for the remaining tokens, and no more', async () => {
    const { summaries, job } = await openJobs(5);
    const limit = { tokensPerDay: 1_000 };
    await claim(summaries, job(0), { ...limit, tokens: 300, nowUs: atUs });
    await claim(summaries, job(1), { ...limit, tokens: 500, nowUs: atUs + 10 });
    const ask = (tokens: number, nowUs: number) =>
      claim(summaries, job(2), { ...limit, tokens, nowUs });
    const refused = (freeAtUs: number) => ({
      outcome: 'budget',
      limit: 'tokensPerDay',
      freeAtUs,
    });
    expect(await ask(201, atUs + 20)).toEqual(refused(atUs + dayUs));
    // Enough tokens are free only when the second request expires.
    expect(await ask(501, atUs + 20)).toEqual(refused(atUs + 10 + dayUs));
    expect(await ask(1_000, atUs + 20)).toEqual(refused(atUs + 10 + dayUs));
    expect(await ask(1_001, atUs + 20)).toEqual(refused(atUs + 20 + dayUs));
    expect(await ask(200, atUs + 20)).toEqual(claimed);
  });

  it('counts the tokens that were actually used, once they are reported', async () => {
    const { summaries, job } = await openJobs(4);
    const claims = [];
    for (const i of [0, 1, 2]) claims.push(await claim(summaries, job(i), { tokens: 100 }));
    const usedTokens = [40, null, 250];
    for (const [i, one] of claims.entries()) {
      if (one.outcome !== 'claimed') throw new Error(one.outcome);
      const request = { id: one.requestId, tokens: usedTokens[i] ?? null };
      const text = { outcome: 'text', key: key(i), text: modelText('A text.') } as const;
      await summaries.settle({ job: job(i), request, result: text, nowUs: atUs });
    }
    const spent = { requestsLastHour: 3, requestsLastDay: 3, tokensLastDay: 390 };
    expect(await summaries.spending(atUs)).toEqual(spent);
    const limit = { tokensPerDay: 490 };
    expect(await claim(summaries, job(3), { ...limit, tokens: 101 })).toMatchObject({
      outcome: 'budget',
    });
    expect(await claim(summaries, job(3), { ...limit, tokens: 100 })).toEqual(claimed);
  });

  it('counts tokens even if the job was requested again or withdrawn meanwhile', async () => {
    const { summaries, job } = await openJobs(1);
    const one = await claim(summaries, job(0), { tokens: 100 });
    if (one.outcome !== 'claimed') throw new Error(one.outcome);
    const [requeued] = await enqueued(summaries, [productJob(0)]);
    const request = { id: one.requestId, tokens: 70 };
    const text = { outcome: 'text', key: key(1), text: modelText('A text.') } as const;
    await summaries.settle({ job: job(0), request, result: text, nowUs: atUs });
    expect(await summaries.spending(atUs)).toMatchObject({ tokensLastDay: 70 });
    const gone = { job: requeued ?? job(0), request: null, nowUs: atUs };
    await summaries.settle({ ...gone, result: { outcome: 'withdrawn' } });
    expect(await summaries.spending(atUs)).toMatchObject({ tokensLastDay: 70 });
  });
});
