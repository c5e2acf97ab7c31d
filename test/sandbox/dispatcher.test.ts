/** Delivery of notifications over real HTTPS: retries, losses, duplicates, the delivery record, and the clock. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { createRandom, createSandboxClock } from '../../src/sandbox/clock.ts';
import { createDeliverer } from '../../src/sandbox/delivery/deliverer.ts';
import {
  createDeliveryRecord,
  type DeliveryEntry,
} from '../../src/sandbox/delivery/delivery-record.ts';
import {
  createDispatcher,
  createReordering,
  type DispatcherOptions,
} from '../../src/sandbox/delivery/dispatcher.ts';
import { type DeliveryPlan, noFaults, planDelivery } from '../../src/sandbox/delivery/faults.ts';
import type { BuiltNotification } from '../../src/sandbox/delivery/notification.ts';
import { type EndpointAnswer, startTrustedEndpoint, turn } from './set-up.ts';

const calm = planDelivery(noFaults, createRandom(1));
const undisturbed = { connectionFails: false, answerLost: false };

function notification(number: number): BuiltNotification {
  return {
    subscriptionId: 's-1',
    event: 'created',
    ackId: `ack-${number}`,
    productId: `id-${number}`,
    productName: `name-${number}`,
    notificationDate: '2026-01-01T00:00:00.000Z',
    encoding: null,
    changedBody: null,
    body: Buffer.from(`{"number":${number}}`),
  };
}

async function startDispatcher(answer?: EndpointAnswer, options: Partial<DispatcherOptions> = {}) {
  const { url, requests, trustedCaPems } = await startTrustedEndpoint(answer);
  const deliverer = createDeliverer({ trustedCaPems, now: () => performance.now() });
  const recipient = {
    address: () => ({ endpoint: url.href, username: 'catalogue', password: 'secret' }),
    delivered: () => {},
  };
  const clock = createSandboxClock({ now: Date.now });
  const record = createDeliveryRecord();
  const stopping = new AbortController();
  const settled: DeliveryEntry[] = [];
  const { dispatch, drained, capacity } = createDispatcher({
    deliverer,
    clock,
    record,
    signal: stopping.signal,
    retryDelaysMs: [5, 5, 5],
    onSettled: (entry) => settled.push(entry),
    ...options,
  });
  onTestFinished(() => {
    stopping.abort();
    deliverer.close();
  });
  const start = (number = 1, changes: Partial<DeliveryPlan> = {}) =>
    dispatch(notification(number), { ...calm, ...changes }, recipient);
  /** Starts the delivery of number 1, and returns its entry when it has ended. */
  const deliver = async (changes?: Partial<DeliveryPlan>) => {
    start(1, changes);
    await drained();
    return record.find(1);
  };
  const bodies = () => requests.map(({ body }) => body.toString());
  return { start, deliver, drained, capacity, record, clock, requests, bodies, settled, stopping };
}

describe('retrying', () => {
  const tenMinutes = { retryDelaysMs: [600_000, 600_000, 600_000] } as const;

  it.each([500, 503, 400, 401, 302])('gives up after four answers of %d', async (status) => {
    const { deliver, record, requests, settled } = await startDispatcher(() => status);
    const entry = await deliver();
    expect(requests).toHaveLength(4);
    const reason = `4 attempts failed; last failure: the endpoint answered ${status}`;
    expect(entry).toMatchObject({ outcome: 'lost', reason, timesReceivedOk: 0 });
    expect(entry.attempts.map((attempt) => attempt.status)).toEqual(Array(4).fill(status));
    expect(settled).toEqual([entry]);
    expect(record.totals()).toMatchObject({ published: 1, lost: 1, delivered: 0, pending: 0 });
  });

  it('stops at the first success', async () => {
    const answer = (nth: number) => (nth === 1 ? 503 : 200);
    const { deliver, record, bodies } = await startDispatcher(answer);
    const attempts = [503, 200].map((status) => ({ status, answerSeen: true, error: null }));
    const delivered = { outcome: 'delivered', reason: null, timesReceivedOk: 1, attempts };
    expect(await deliver()).toMatchObject(delivered);
    expect(bodies()).toEqual(Array(2).fill('{"number":1}'));
    expect(record.totals()).toMatchObject({ attempts: 2, duplicatesSent: 0, accepted: 1 });
  });

  it('waits according to the clock of the sandbox', async () => {
    const { start, drained, record, clock, requests } = await startDispatcher(
      () => 503,
      tenMinutes,
    );
    start();
    for (const seen of [1, 2, 3]) {
      await expect.poll(() => record.totals().attempts).toBe(seen);
      expect(requests).toHaveLength(seen);
      clock.advance(600_000);
    }
    await drained();
    expect(requests).toHaveLength(4);
    const starts = record.find(1).attempts.map(({ startedAtMs }) => startedAtMs);
    expect((starts.at(-1) ?? 0) - (starts[0] ?? 0)).toBeGreaterThanOrEqual(1_800_000);
  });

  it('stops when the sandbox closes, without recording a loss', async () => {
    const { start, drained, record, stopping, settled } = await startDispatcher(
      () => 503,
      tenMinutes,
    );
    start();
    await expect.poll(() => record.totals().attempts).toBe(1);
    stopping.abort();
    await drained();
    expect(record.find(1).outcome).toBe('pending');
    expect(settled).toEqual([]);
  });
});

describe('a fault', () => {
  const [, ...later] = calm.attempts;
  const answerLost = { ...undisturbed, answerLost: true };
  const connectionFails = { ...undisturbed, connectionFails: true };
  const seen = { status: 200, answerSeen: true, error: null };
  const unseen = { status: 200, answerSeen: false, error: expect.stringContaining('lost') };

  it.each<[string, Partial<DeliveryPlan>, number, object, object]>([
    [
      'of type "answer lost" makes the endpoint receive the same bytes twice',
      { attempts: [answerLost, ...later] },
      2,
      { outcome: 'delivered', timesReceivedOk: 2, attempts: [unseen, seen] },
      { duplicatesSent: 1, accepted: 1, receivedOk: 2 },
    ],
    [
      'of four lost answers counts as a loss although the endpoint received the notification',
      { attempts: Array(4).fill(answerLost) },
      4,
      { outcome: 'lost', timesReceivedOk: 4 },
      { lost: 1, accepted: 1, duplicatesSent: 3 },
    ],
    [
      'of a failed connection uses up an attempt that the endpoint never receives',
      { attempts: [connectionFails, ...later] },
      1,
      { outcome: 'delivered', timesReceivedOk: 1 },
      { attempts: 2, duplicatesSent: 0 },
    ],
    [
      'of type "lost" prevents all four attempts from reaching the endpoint',
      { lost: true },
      0,
      { outcome: 'lost', timesReceivedOk: 0 },
      { attempts: 4, lost: 1, accepted: 0 },
    ],
    [
      'of type "duplicate" sends the same bytes once more after the success',
      { duplicateAfterMs: 10 },
      2,
      { outcome: 'delivered' },
      { published: 1, delivered: 1, duplicatesSent: 1 },
    ],
  ])('%s', async (_, changes, requests, entry, totals) => {
    const { deliver, record, bodies, settled } = await startDispatcher();
    expect(await deliver(changes)).toMatchObject(entry);
    expect(bodies()).toEqual(Array(requests).fill('{"number":1}'));
    expect(record.totals()).toMatchObject(totals);
    expect(settled).toHaveLength(1);
  });

  it('of order delivers later notifications first', async () => {
    // The clock stands still, so that only the later notifications can release the first.
    const clock = createSandboxClock({ now: () => 0 });
    const { start, drained, bodies } = await startDispatcher(undefined, { clock });
    start(1, { overtakenBy: 2 });
    for (const number of [2, 3]) start(number);
    await drained();
    expect(bodies().at(-1)).toBe('{"number":1}');
    expect(bodies()).toHaveLength(3);
  });
});

describe('the dispatcher', () => {
  it('has at most eight requests in flight', async () => {
    let [inFlight, most] = [0, 0];
    const deliver = async () => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      await turn();
      inFlight -= 1;
      return { durationMs: 1, status: 200, error: null, code: null };
    };
    const { start, drained, record } = await startDispatcher(undefined, { deliverer: { deliver } });
    for (let number = 1; number <= 40; number += 1) start(number);
    await drained();
    expect([record.totals().delivered, most]).toEqual([40, 8]);
  });

  it('passes on an error of the listener for settled notifications', async () => {
    const onSettled = () => {
      throw new Error('the listener broke');
    };
    const { start, drained, capacity } = await startDispatcher(undefined, { onSettled });
    start();
    await expect(drained()).rejects.toThrow('the listener broke');
    await expect(capacity(10)).rejects.toThrow('the listener broke');
  });
});

describe('the delivery record', () => {
  it('stores no bodies, and refuses a notification that it does not contain', () => {
    const record = createDeliveryRecord();
    record.open(notification(1));
    expect(record.entries()[0]).not.toHaveProperty('body');
    expect(() => record.settle(2, 'never published')).toThrow(RangeError);
  });
});

/** Delays notification 5 until two later ones are sent, on a stopped clock. */
function delayFifth() {
  const clock = createSandboxClock({ now: () => 0 });
  const reordering = createReordering(clock);
  const closing = new AbortController();
  let released = false;
  void reordering.wait(5, 2, closing.signal).then(() => {
    released = true;
  });
  const isReleased = async () => {
    await turn();
    return released;
  };
  return { clock, reordering, closing, isReleased };
}

describe('a delayed notification', () => {
  it('is sent after the given number of later ones, not counting earlier ones', async () => {
    const { reordering, isReleased } = delayFifth();
    for (const sequence of [1, 2, 3, 4, 6]) reordering.sent(sequence);
    expect(await isReleased()).toBe(false);
    reordering.sent(8);
    expect(await isReleased()).toBe(true);
  });

  it('is sent after two seconds when no later one follows', async () => {
    const { clock, isReleased } = delayFifth();
    clock.advance(1_999);
    expect(await isReleased()).toBe(false);
    clock.advance(1);
    expect(await isReleased()).toBe(true);
  });

  it('is released immediately when the sandbox closes', async () => {
    const { closing, isReleased } = delayFifth();
    closing.abort();
    expect(await isReleased()).toBe(true);
  });
});

const hourMs = 3_600_000;
const never = new AbortController().signal;

describe('the sandbox clock', () => {
  it('is the real time plus the total advance', () => {
    let realMs = 1_000;
    const clock = createSandboxClock({ now: () => realMs });
    expect(clock.now()).toBe(1_000);
    clock.advance(500);
    realMs = 1_100;
    expect(clock.now()).toBe(1_600);
    expect(clock.offsetMs()).toBe(500);
  });

  it('stands still when the real time goes back', () => {
    let realMs = 1_000;
    const clock = createSandboxClock({ now: () => realMs });
    clock.now();
    realMs = 400;
    expect(clock.now()).toBe(1_000);
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('refuses to advance by %d', (ms) => {
    const clock = createSandboxClock({ now: () => 0 });
    expect(() => clock.advance(ms)).toThrow(RangeError);
    expect(clock.now()).toBe(0);
  });

  it('ends a long wait as soon as it is advanced far enough', async () => {
    const clock = createSandboxClock({ now: () => 0 });
    let ended = false;
    const waiting = clock.waitUntil(2 * hourMs, never).then((reached) => {
      ended = true;
      return reached;
    });
    clock.advance(hourMs);
    await Promise.resolve();
    expect(ended).toBe(false);
    clock.advance(hourMs);
    expect(await waiting).toBe(true);
  });

  it('ends a wait when the time has come', async () => {
    const clock = createSandboxClock({ now: () => performance.now() });
    const untilMs = clock.now() + 20;
    expect(await clock.waitUntil(untilMs, never)).toBe(true);
    expect(clock.now()).toBeGreaterThanOrEqual(untilMs);
  });

  it('reports whether a wait was aborted or its time was reached', async () => {
    const clock = createSandboxClock({ now: () => 0 });
    const giveUp = new AbortController();
    const waiting = clock.waitUntil(hourMs, giveUp.signal);
    giveUp.abort();
    expect(await waiting).toBe(false);
    expect(await clock.waitUntil(0, giveUp.signal)).toBe(false);
  });
});
