/** The authority's advice when to renew (RFC 9773), through the loop of a receiver. */
import { describe, expect, it, vi } from 'vitest';
import { certificateIdOf } from '../../../src/tls/acme/renewal-time.ts';
import { failure, openOrders, orderAtStub, refusal, startUs } from '../../helpers/order-at-stub.ts';
import type { Fault } from '../../helpers/stub-authority.ts';

const minuteUs = 60_000_000;
const hourUs = 60 * minuteUs;
const dayUs = 24 * hourUs;

const iso = (atUs: number) => new Date(atUs / 1000).toISOString();
const waitFor = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 10_000 });

/** An authority whose advice a test sets, and a first certificate of it. */
async function withAdvice() {
  const advice = {
    of: (_certificateId: string): { start: unknown; end: unknown } => ({
      start: iso(startUs + 30 * dayUs),
      end: iso(startUs + 40 * dayUs),
    }),
  };
  const opened = await orderAtStub({ renewalInfo: (id) => advice.of(id) });
  await opened.look();
  const first = opened.served[0];
  if (first === undefined) throw new Error('There is no certificate.');
  const asked = () => opened.authority.requests.filter(({ step }) => step === 'renewalInfo');
  const { context } = opened;
  /** Resolves when the loop has noted an answer, or that there was none, with its time to ask again. */
  const noted = async (askAgainAtUs: number) => {
    await waitFor(async () => {
      expect((await context.states.read()).renewalInfo?.askAgainAtUs).toBe(askAgainAtUs);
    });
    return (await context.states.read()).renewalInfo;
  };
  const orders = () => opened.authority.requests.filter(({ step }) => step === 'newOrder');
  return { ...opened, first, advice, asked, noted, orders };
}

describe('advice', () => {
  it('is asked for by the id of the certificate, and obeyed within its window', async () => {
    const { clock, first, advice, asked, noted, startLoop, orders, served } = await withAdvice();
    const [beginsUs, endUs] = [clock.us + 10 * dayUs, clock.us + 12 * dayUs];
    advice.of = () => ({ start: iso(beginsUs), end: iso(endUs) });
    startLoop(first);
    const info = await noted(clock.us + 6 * hourUs);
    expect(asked().map(({ path }) => path)).toEqual([
      `/renewalInfo/${certificateIdOf(first.cert)}`,
    ]);
    expect(info).toMatchObject({ window: { startUs: beginsUs, endUs } });

    clock.us = beginsUs - minuteUs;
    await noted(clock.us + 6 * hourUs);
    expect(orders()).toHaveLength(1);
    clock.us = endUs;
    await waitFor(() => expect(served).toHaveLength(2));
    expect(orders()).toHaveLength(2);
    expect(orders()[0]?.payload).not.toHaveProperty('replaces');
    expect(orders()[1]?.payload).toMatchObject({ replaces: certificateIdOf(first.cert) });
  });

  it.each([
    ['five hours', '18000', 5 * hourUs],
    ['nothing', undefined, 6 * hourUs],
    ['a second', '1', minuteUs],
    ['a week', '604800', dayUs],
    ['nonsense', 'later', 6 * hourUs],
  ])('is asked for again as Retry-After says: %s', async (_title, header, afterUs) => {
    const { authority, clock, first, asked, noted, startLoop, looked } = await withAdvice();
    authority.break('renewalInfo', (answer) => ({
      ...answer,
      headers: header === undefined ? {} : { 'retry-after': header },
    }));
    startLoop(first);
    const begunUs = clock.us;
    await noted(begunUs + afterUs);
    clock.us = begunUs + afterUs - 1;
    await looked(30);
    expect(asked()).toHaveLength(1);
    clock.us = begunUs + afterUs;
    await waitFor(() => expect(asked()).toHaveLength(2));
  });

  it('that lies in the past renews at once, and once', async () => {
    const { clock, first, advice, asked, startLoop, served, orders, looked } = await withAdvice();
    clock.us += 10 * dayUs;
    const past = { start: iso(clock.us - 2 * hourUs), end: iso(clock.us - hourUs) };
    const usual = { start: iso(clock.us + 60 * dayUs), end: iso(clock.us + 61 * dayUs) };
    advice.of = (id) => (id === certificateIdOf(first.cert) ? past : usual);
    startLoop(first);
    await waitFor(() => expect(served).toHaveLength(2));
    await waitFor(() => expect(asked()).toHaveLength(2));
    await looked(60);
    expect(orders()).toHaveLength(2);
    expect(asked()).toHaveLength(2);
  });

  it('that lies in the past for every certificate makes no storm', async () => {
    const { clock, first, advice, startLoop, orders, looked } = await withAdvice();
    advice.of = () => ({ start: iso(clock.us - 2 * dayUs), end: iso(clock.us - dayUs) });
    startLoop(first);
    const begunUs = clock.us;
    for (let hours = 6; hours <= 8 * 24; hours += 6) {
      clock.us = begunUs + hours * hourUs;
      await looked(4);
    }
    // The first is from before; then one every two days.
    expect(orders().length).toBeGreaterThan(3);
    expect(orders().length).toBeLessThanOrEqual(1 + 5);
  });

  it('on another certificate is ignored', async () => {
    const { clock, look, context, first } = await withAdvice();
    const window = { startUs: clock.us - dayUs, endUs: clock.us - dayUs };
    const write = async (certificateId: string | null) => {
      const state = await context.states.read();
      const renewalInfo = { certificateId: certificateId ?? '', window, askAgainAtUs: clock.us };
      await context.states.write({ ...state, renewalInfo });
    };
    clock.us += 10 * dayUs;
    await write('aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE');
    expect(await look()).toMatchObject({ outcome: 'current', due: { because: 'share' } });
    // The same advice on this one is followed.
    await write(certificateIdOf(first.cert));
    expect(await look()).toMatchObject({ outcome: 'renewed' });
    expect((await context.states.read()).renewalInfo).toBeNull();
  });

  it('later than expiry allows loses', async () => {
    const { clock, first, advice, noted, startLoop, served } = await withAdvice();
    const begunUs = clock.us;
    advice.of = () => ({ start: iso(begunUs + 200 * dayUs), end: iso(begunUs + 300 * dayUs) });
    startLoop(first);
    await noted(clock.us + 6 * hourUs);
    clock.us = begunUs + 81 * dayUs - minuteUs;
    await noted(clock.us + 6 * hourUs);
    expect(served).toHaveLength(1);
    clock.us = begunUs + 81 * dayUs;
    await waitFor(() => expect(served).toHaveLength(2));
  });

  it('is the same after a restart, without another question', async () => {
    const { authority, clock, first, noted, asked, startLoop, dataDir } = await withAdvice();
    const loop = startLoop(first);
    await noted(clock.us + 6 * hourUs);
    await loop.stop();
    const again = openOrders(authority, clock, { dataDir });
    const before = await again.look();
    expect(before).toMatchObject({ outcome: 'current', due: { because: 'authority' } });
    again.startLoop(first);
    await again.looked(30);
    expect(asked()).toHaveLength(1);
  });
});

describe('advice that cannot be had', () => {
  const window =
    (start: unknown, end: unknown): Fault =>
    (answer) => ({ ...answer, body: { suggestedWindow: { start, end } } });

  it.each<[string, Fault]>([
    ['as it is down', failure(503)],
    ['for too many questions', failure(429, { 'retry-after': '60' })],
    ['as the certificate is not known', refusal('malformed', { status: 404 })],
    ['for a refused nonce', refusal('badNonce')],
    ['as the connection breaks', () => 'reset'],
    ['but a web page', (answer) => ({ ...answer, body: '<html>' })],
    ['but an empty record', (answer) => ({ ...answer, body: {} })],
    ['but null', (answer) => ({ ...answer, body: null })],
    ['but a window of nothing', window(null, null)],
    ['but a window of numbers', window(0, 1)],
    ['but a window of words', window('soon', 'later')],
    ['but a window without end', window('2026-06-01T00:00:00Z', undefined)],
    ['but a window thousands of years off', window('2026-06-01T00:00:00Z', '9999-12-31T23:59:59Z')],
    ['but no date of the calendar', window('2026-02-30T00:00:00Z', '2026-02-31T00:00:00Z')],
  ])('%s: it goes by lifetime, and is asked again later', async (_title, fault) => {
    const { authority, clock, first, noted, asked, startLoop, looked, log, dataDir } =
      await withAdvice();
    authority.break('renewalInfo', fault);
    const loop = startLoop(first);
    expect(await noted(clock.us + 6 * hourUs)).toMatchObject({ window: null });
    await looked(20);
    expect(asked()).toHaveLength(1);
    expect(log.map(({ level }) => level)).toEqual(['debug']);
    await loop.stop();
    const { look } = openOrders(authority, clock, { dataDir });
    expect(await look()).toMatchObject({ outcome: 'current', due: { because: 'share' } });
    clock.us += 61 * dayUs;
    expect(await look()).toMatchObject({ outcome: 'renewed' });
  });

  it('any more: the last advice stays', async () => {
    const { authority, clock, first, noted, startLoop } = await withAdvice();
    startLoop(first);
    const before = await noted(clock.us + 6 * hourUs);
    expect(before?.window).not.toBeNull();
    authority.break('renewalInfo', failure(500));
    clock.us += 7 * hourUs;
    expect(await noted(clock.us + 6 * hourUs)).toMatchObject({ window: before?.window });
  });

  it('as none is offered: it is asked again in a day', async () => {
    const { clock, look, served, startLoop, authority, context } = await orderAtStub();
    await look();
    startLoop(served[0]);
    await waitFor(async () => {
      expect((await context.states.read()).renewalInfo).toMatchObject({
        window: null,
        askAgainAtUs: clock.us + dayUs,
      });
    });
    expect(authority.count('renewalInfo')).toBe(0);
  });
});

describe('the certificate that an order replaces', () => {
  it.each(['alreadyReplaced', 'conflict', 'malformed', 'unauthorized', 'serverUnknown'])(
    'and that is refused as %s is left out, once',
    async (type) => {
      const { authority, clock, look, orders } = await withAdvice();
      clock.us += 70 * dayUs;
      authority.break('newOrder', refusal(type, { status: 409 }), 1);
      expect(await look()).toMatchObject({ outcome: 'renewed' });
      expect(orders().map(({ payload }) => 'replaces' in payload)).toEqual([false, true, false]);
    },
  );

  it('is not to blame when the authority is down or has had too much', async () => {
    const { authority, clock, look, orders } = await withAdvice();
    clock.us += 70 * dayUs;
    authority.break('newOrder', refusal('rateLimited', { status: 429 }));
    await expect(look()).rejects.toMatchObject({ code: 'unavailable' });
    expect(orders()).toHaveLength(2);
  });

  it('is not named where the authority gives no advice', async () => {
    const { authority, clock, look } = await orderAtStub();
    await look();
    clock.us += 70 * dayUs;
    await look();
    const orders = authority.requests.filter(({ step }) => step === 'newOrder');
    expect(orders.map(({ payload }) => 'replaces' in payload)).toEqual([false, false]);
  });
});
