/** The control port: what it tells, what it steers, and how it refuses mistakes. */
import { describe, expect, it } from 'vitest';
import { createSubscriptions } from '../../src/sandbox/account.ts';
import { createSandboxClock } from '../../src/sandbox/clock.ts';
import { createControlApp } from '../../src/sandbox/control.ts';
import {
  createDeliveryRecord,
  type DeliveryEntry,
} from '../../src/sandbox/delivery/delivery-record.ts';
import { createFaultSettings, noFaults } from '../../src/sandbox/delivery/faults.ts';
import type { NotificationEvent } from '../../src/sandbox/delivery/notification.ts';
import { createInferenceRecord } from '../../src/sandbox/inference/inference-app.ts';
import {
  createInferenceKnobs,
  inferenceSettingsSchema,
} from '../../src/sandbox/inference/inference-settings.ts';
import { startLocalServer } from '../../src/sandbox/local-server.ts';
import { createEventLedger } from '../../src/sandbox/publishing/events.ts';
import { createHoldings } from '../../src/sandbox/publishing/holdings.ts';
import type { Publisher } from '../../src/sandbox/publishing/publisher.ts';
import { createRandom } from '../../src/sandbox/random.ts';
import { createRequestLog } from '../../src/sandbox/services/catalogue.ts';
import {
  createServiceKnobs,
  serviceSettingsSchema,
} from '../../src/sandbox/services/service-settings.ts';

const controlPort = { name: 'control port', hazard: 'it has no password', allowRemote: false };
const startMs = Date.UTC(2026, 4, 1, 12);

/** What the answers of the port have between them; each test looks at the part it asked for. */
interface Answer {
  readonly operations: Record<string, string>;
  readonly entries: DeliveryEntry[];
  readonly next: number | null;
  readonly title: string;
  readonly detail: string;
  readonly errors: { field: string; message: string }[];
}

/** `productsLeft`: how many products the publisher still has. */
function createWorld({ productsLeft = Number.POSITIVE_INFINITY } = {}) {
  const record = createDeliveryRecord();
  const holdings = createHoldings();
  const faults = createFaultSettings(noFaults);
  const clock = createSandboxClock({ now: () => startMs });
  const published: [number, NotificationEvent][] = [];
  let paused = false;
  const publisher: Publisher = {
    run: async () => {},
    drained: async () => {},
    quiet: async () => {},
    publishPast: async () => 0,
    pass: async ({ products }) => products,
    publishNow: async (count, event) => {
      published.push([count, event]);
      return Math.min(count, productsLeft);
    },
    pause: () => {
      paused = true;
    },
    resume: () => {
      paused = false;
    },
    paused: () => paused,
  };
  const about = { endpoint: 'https://localhost/notifications', subscriptionId: 's-1' };
  const knobs = createServiceKnobs(serviceSettingsSchema.parse({}));
  const requests = createRequestLog();
  const random = createRandom(1);
  const subscriptions = createSubscriptions({ clock, knobs, endpointRules: {}, random });
  const inference = {
    knobs: createInferenceKnobs(inferenceSettingsSchema.parse({})),
    record: createInferenceRecord(),
  };
  const account = { subscriptions, knobs, requests, inference };
  const ledger = createEventLedger();
  const { signal } = new AbortController();
  const publishing = { record, holdings, ledger, faults, clock, publisher, signal };
  const app = createControlApp({ ...publishing, about, ...account });
  const ask = async (method: string, path: string, body?: unknown) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const response = await app.request(path, {
      method,
      ...(body === undefined ? {} : { body: text }),
    });
    const json = (await response.json()) as Answer; // The assertions check what it really is.
    return { status: response.status, headers: response.headers, json };
  };
  return { app, record, faults, clock, publisher, published, ask, ...account };
}

function fill(record: ReturnType<typeof createDeliveryRecord>, count: number): void {
  for (let number = 1; number <= count; number += 1) {
    const sequence = record.open({
      subscriptionId: 's-1',
      event: 'created',
      ackId: `ack-${number}`,
      productId: `id-${number}`,
      productName: `name-${number}`,
      notificationDate: '2026-01-01T00:00:00.000Z',
    });
    if (number % 2 === 0) record.settle(sequence, 'lost', 'for the test');
  }
}

describe('the control port tells', () => {
  it('what it is and what it can do, without secrets', async () => {
    const { status, json } = await createWorld().ask('GET', '/');
    expect(status).toBe(200);
    expect(json).toMatchObject({
      what: expect.stringContaining('sandbox'),
      endpoint: 'https://localhost/notifications',
      subscriptionId: 's-1',
      paused: false,
    });
    expect(Object.keys(json.operations)).toContain('PATCH /faults');
    expect(Object.keys(json.operations)).toContain('PATCH /service');
  });

  it('the record page by page', async () => {
    const { ask, record } = createWorld();
    fill(record, 5);
    const first = (await ask('GET', '/record?limit=3')).json;
    expect(first.entries.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    expect(first.next).toBe(3);
    const second = (await ask('GET', `/record?limit=3&after=${first.next}`)).json;
    expect(second.entries).toMatchObject([{ sequence: 4 }, { sequence: 5, outcome: 'pending' }]);
    expect(second.next).toBeNull();
  });

  it('the record of one outcome', async () => {
    const { ask, record } = createWorld();
    fill(record, 5);
    const { entries } = (await ask('GET', '/record?outcome=lost')).json;
    expect(entries).toMatchObject([
      { sequence: 2, outcome: 'lost', reason: 'for the test', attempts: [], timesReceivedOk: 0 },
      { sequence: 4 },
    ]);
    expect(entries).toHaveLength(2);
  });

  it('the totals', async () => {
    const { ask, record } = createWorld();
    fill(record, 5);
    expect((await ask('GET', '/totals')).json).toEqual({
      published: 5,
      delivered: 0,
      lost: 2,
      pending: 3,
      duplicatesSent: 0,
      attempts: 0,
      accepted: 0,
      receivedOk: 0,
    });
  });
});

describe('the control port steers', () => {
  it('single fault rates and keeps the others', async () => {
    const { ask, faults } = createWorld();
    await ask('PATCH', '/faults', { lost: 0.5 });
    const { status, json } = await ask('PATCH', '/faults', { duplicate: 1 });
    expect(status).toBe(200);
    expect(json).toEqual({ ...noFaults, lost: 0.5, duplicate: 1 });
    expect(faults.current()).toEqual(json);
    expect((await ask('GET', '/faults')).json).toEqual(json);
  });

  it('the clock, forward', async () => {
    const { ask, clock } = createWorld();
    const moved = await ask('POST', '/clock', { advanceMs: 60_000 });
    expect(moved.json).toEqual({ now: '2026-05-01T12:01:00.000Z', offsetMs: 60_000 });
    expect(clock.now()).toBe(startMs + 60_000);
    expect((await ask('GET', '/clock')).json).toEqual(moved.json);
  });

  it('the clock by more than ten years in one go, but not without bound', async () => {
    const { ask, clock } = createWorld();
    const mostMs = 4_000 * 86_400_000;
    expect((await ask('POST', '/clock', { advanceMs: mostMs })).status).toBe(200);
    expect((await ask('POST', '/clock', { advanceMs: mostMs + 1 })).status).toBe(400);
    expect(clock.offsetMs()).toBe(mostMs);
  });

  it('publishing at once, created unless told', async () => {
    const { ask, published } = createWorld();
    expect((await ask('POST', '/publish', { count: 3 })).json).toEqual({ published: 3 });
    await ask('POST', '/publish', { count: 10_000, event: 'deleted' });
    expect(published).toEqual([
      [3, 'created'],
      [10_000, 'deleted'],
    ]);
  });

  it('the pause', async () => {
    const { ask, publisher } = createWorld();
    expect((await ask('POST', '/pause')).json).toEqual({ paused: true });
    expect(publisher.paused()).toBe(true);
    expect((await ask('POST', '/resume')).json).toEqual({ paused: false });
    expect(publisher.paused()).toBe(false);
  });
});

describe('the control port refuses', () => {
  it.each([
    ['PATCH', '/faults', { duplicat: 0.5 }, 'duplicat'],
    ['PATCH', '/faults', { lost: 1.5 }, 'lost'],
    ['PATCH', '/faults', { lost: '1' }, 'lost'],
    ['POST', '/clock', { advanceMs: -1 }, 'advanceMs'],
    ['POST', '/clock', {}, 'advanceMs'],
    ['POST', '/publish', { count: 10_001 }, 'count'],
    ['POST', '/publish', { count: 1.5 }, 'count'],
    ['POST', '/publish', { count: 1, event: 'Created' }, 'event'],
    ['GET', '/record?outcome=gone', undefined, 'outcome'],
    ['GET', '/record?limit=0', undefined, 'limit'],
    ['GET', '/record?limit=ten', undefined, 'limit'],
    ['GET', '/record?page=2', undefined, 'page'],
  ])('%s %s %j, naming %s', async (method, path, body, field) => {
    const { ask, faults, clock, published } = createWorld();
    const { status, headers, json } = await ask(method, path, body);
    expect(status).toBe(400);
    expect(headers.get('content-type')).toBe('application/problem+json');
    expect(json).toMatchObject({ type: 'about:blank', status: 400, title: expect.any(String) });
    expect(json.errors).toEqual([{ field, message: expect.any(String) }]);
    expect(json.detail).toContain(field);
    expect(faults.current()).toEqual(noFaults);
    expect(clock.offsetMs()).toBe(0);
    expect(published).toEqual([]);
  });

  it.each(['', '{"count":', 'count=1'])('the body %j, which is not JSON', async (body) => {
    const { status, json } = await createWorld().ask('POST', '/publish', body);
    expect(status).toBe(400);
    expect(json.detail).toContain('{"count":10,"event":"created"}');
  });

  it('a body that is too large', async () => {
    const { status, json } = await createWorld().ask('POST', '/publish', ' '.repeat(70_000));
    expect(status).toBe(413);
    expect(json.title).toBe('The body is too large');
  });

  it('an unknown path', async () => {
    const { status, json } = await createWorld().ask('GET', '/total');
    expect(status).toBe(404);
    expect(json.detail).toContain('/total');
  });

  it('a method that a path does not take, naming those it does', async () => {
    const { status, headers } = await createWorld().ask('PUT', '/faults', {});
    expect(status).toBe(405);
    expect(headers.get('allow')).toBe('GET, HEAD, PATCH');
  });

  it('to publish when there is no product left', async () => {
    const { ask } = createWorld({ productsLeft: 0 });
    expect(await ask('POST', '/publish', { count: 1 })).toMatchObject({
      status: 409,
      json: { detail: expect.stringContaining('records has run out') },
    });
    expect(await ask('POST', '/publish', { count: 1, event: 'deleted' })).toMatchObject({
      status: 409,
      json: { detail: expect.stringContaining('publish created ones first') },
    });
  });

  it('to listen for other machines unless that is allowed', async () => {
    const { app } = createWorld();
    const address = { host: '0.0.0.0', port: 0 };
    await expect(startLocalServer(app.fetch, address, controlPort)).rejects.toThrow(
      'The control port will not listen on 0.0.0.0: it has no password.',
    );
  });

  it('to start on a port that is taken, saying so', async () => {
    const { app } = createWorld();
    const host = '127.0.0.1';
    const first = await startLocalServer(app.fetch, { host, port: 0 }, controlPort);
    const port = Number(new URL(first.url).port);
    const second = startLocalServer(app.fetch, { host, port }, controlPort);
    await expect(second).rejects.toThrow(/EADDRINUSE.*Choose another port/);
    await first.close();
  });
});
