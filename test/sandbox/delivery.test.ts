/** Push deliveries of the sandbox: bodies, attempts and retries, faults, and the record of outcomes. */
import { describe, expect, it, vi } from 'vitest';
import type { Faults, SandboxOptions } from '../../src/sandbox/settings.ts';
import {
  type EndpointAnswer,
  iso,
  missing,
  recorded,
  startEndpoint,
  startMs,
  startTestSandbox,
} from './set-up.ts';

const credentials = { username: 'catalogue', password: 'hunter2:secret' };

type Totals = ReturnType<Awaited<ReturnType<typeof startTestSandbox>>['sandbox']['totals']>;

/** Starts a sandbox with a subscription of an endpoint; failed attempts are retried immediately. */
async function startDelivering(options: Partial<SandboxOptions> = {}, answer?: EndpointAnswer) {
  const endpoint = await startEndpoint(answer);
  const { trustedCaPems, url, requests } = endpoint;
  const test = await startTestSandbox({ trustedCaPems, retryDelaysMs: [0, 0, 0], ...options });
  const { sandbox } = test;
  const events = ['created', 'modified', 'deleted'] as const;
  const subscribe = (path = 'default') =>
    sandbox.addSubscription({
      endpoint: url.replace('default', path),
      ...credentials,
      events: [...events],
    });
  const { id } = subscribe();
  /** Publishes, and waits until all is delivered or lost. */
  const publish = async (count: number) => {
    await sandbox.publishNow(count);
    await vi.waitFor(() => expect(sandbox.totals().pending).toBe(0), 10_000);
  };
  const bodies = () => requests.map(({ body }) => JSON.parse(body.toString()));
  return { ...test, ...endpoint, id, subscribe, publish, bodies };
}

describe('a notification', () => {
  it('has the documented form, the product, and the registered credentials', async () => {
    const { sandbox, publish, requests, bodies, id } = await startDelivering();
    await publish(1);
    const [{ headers, path } = {}] = requests;
    const pair = Buffer.from('catalogue:hunter2:secret').toString('base64');
    expect([path, headers]).toEqual([
      '/notifications/default',
      expect.objectContaining({
        authorization: `Basic ${pair}`,
        'content-type': 'application/json',
      }),
    ]);
    const [{ value, AckId, ...body }] = bodies();
    const [entry] = sandbox.entries();
    expect(body).toMatchObject({ SubscriptionEvent: 'created', SubscriptionId: id });
    expect([body.ProductId, body.ProductName]).toEqual([value.Id, value.Name]);
    expect(Buffer.from(AckId, 'base64').toString()).toBe(`${startMs}-0:${id}`);
    expect(Math.floor(Date.parse(body.NotificationDate))).toBe(startMs);
    expect(entry).toMatchObject({ ackId: AckId, outcome: 'delivered', attempts: [200] });
    expect(sandbox.subscriptions()[0]?.lastNotificationDate).toBe(iso(startMs));
    if (missing) return;
    const name = 'notifications/push-created-s1-cog-vendor-sample.capital-Value.json';
    const documented = Object.keys(recorded(name));
    expect(Object.keys(body)).toEqual(documented.filter((key) => key !== 'Value'));
  });

  it('is sent to every running subscription whose events and filter match, not to others', async () => {
    const { sandbox, publish, subscribe, requests, edit, create } = await startDelivering();
    const { id } = subscribe('other');
    await create({ FilterParam: "contains(Name,'no product')", Status: 'running' });
    await publish(2);
    await edit(id, { Status: 'paused' });
    await publish(3);
    await edit(id, { Status: 'running' });
    await publish(1);
    const paths = requests.map(({ path }) => path?.split('/').at(-1));
    expect(paths.filter((path) => path === 'other')).toHaveLength(3);
    expect(paths.filter((path) => path === 'default')).toHaveLength(6);
    const outcomes = sandbox.events().map(({ subscriptions }) => subscriptions[1]?.outcome);
    expect(outcomes).toEqual([
      ...['delivered', 'delivered', 'paused', 'paused', 'paused', 'delivered'],
    ]);
  });
});

describe('an attempt', () => {
  it.each<[string, EndpointAnswer, (number | null)[], string]>([
    ['is repeated until a success', (nth) => (nth < 3 ? 503 : 204), [503, 503, 204], 'delivered'],
    ['is repeated three times at most', () => 500, [500, 500, 500, 500], 'lost'],
    ['does not follow redirects', (nth) => (nth < 2 ? 302 : 200), [302, 200], 'delivered'],
  ])('%s', async (_, answer, attempts, outcome) => {
    const { sandbox, publish } = await startDelivering({}, answer);
    await publish(1);
    expect(sandbox.entries()).toMatchObject([{ attempts, outcome }]);
  });

  it('is repeated after 1, 5 and 25 seconds by default, with the address of that time', async () => {
    const { sandbox, requests, edit, id } = await startDelivering(
      { retryDelaysMs: [1_000, 5_000, 25_000] },
      () => 503,
    );
    await sandbox.publishNow(1);
    const seen: number[] = [];
    for (const advanceMs of [0, 999, 1, 4_999, 1, 24_999, 1]) {
      sandbox.clock.advance(advanceMs);
      await sandbox.quiet();
      seen.push(requests.length);
      if (seen.length === 3) await edit(id, { NotificationEpPassword: 'new' });
    }
    expect(seen).toEqual([1, 1, 2, 2, 3, 3, 4]);
    expect(sandbox.totals()).toMatchObject({ lost: 1, pending: 0 });
    const passwords = requests.map(({ headers }) => atob(headers.authorization?.slice(6) ?? ''));
    expect(passwords.map((pair) => pair.split(':').at(-1))).toEqual([
      'secret',
      'secret',
      'new',
      'new',
    ]);
  });
});

describe('the fault', () => {
  const publishWith = async (faults: Partial<Faults>, count = 20) => {
    const test = await startDelivering({ now: Date.now, faults });
    await test.publish(count);
    return test;
  };

  it.each<[Partial<Faults>, Partial<Totals>, number]>([
    [{ lost: 1 }, { lost: 20, accepted: 0 }, 0],
    [{ answerLost: 1 }, { lost: 20, accepted: 20 }, 80],
    [{ duplicate: 1 }, { delivered: 20, receivedOk: 40 }, 40],
  ])('%j has the totals %j, with %i requests', async (faults, totals, count) => {
    const { sandbox, requests } = await publishWith(faults);
    await expect.poll(sandbox.totals).toMatchObject(totals);
    expect(requests).toHaveLength(count);
  });

  it('outOfOrder: later ones are sent before', async () => {
    const { sandbox, bodies } = await publishWith({ outOfOrder: 0.5 });
    const sent = bodies().map(({ AckId }) => AckId);
    const order = sandbox.entries().map(({ ackId }) => sent.indexOf(ackId));
    expect(order.toSorted((a, b) => a - b)).not.toEqual(order);
    expect(new Set(order).size).toBe(20);
  });

  it.each<[Partial<Faults>, (body: Record<string, unknown>) => boolean]>([
    [{ ackIdAbsent: 1 }, (body) => !('AckId' in body)],
    [{ ackIdGuid: 1 }, ({ AckId }) => /^[\da-f-]{36}$/.test(String(AckId))],
    [{ capitalValue: 1 }, (body) => 'Value' in body && !('value' in body)],
    [{ arrayBody: 1 }, (body) => Array.isArray(body)],
  ])('%j changes the body', async (faults, isChanged) => {
    const { bodies } = await publishWith(faults, 3);
    expect(bodies().map(isChanged)).toEqual([true, true, true]);
  });
});
