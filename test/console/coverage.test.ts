/** `/api/coverage`, as a program uses it, and as the OpenAPI document describes it. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { AppError } from '../../src/domain/app-error.ts';
import { type Definition, type HourCoverage, hourUs } from '../../src/domain/coverage.ts';
import { closedSchema } from './closed-schema.ts';
import { openConsole } from './console-world.ts';
import { createMemoryCompleteness } from './memory-completeness.ts';

/** The time of the world: 2026-05-02T12:00:00Z. */
const nowUs = Date.UTC(2026, 4, 2, 12) * 1000;

const definitions: Definition[] = ['alps', 'sea'].map((subscription) => {
  return { subscription, fromUs: nowUs - 3 * hourUs, events: ['created'], filter: '' };
});

function compared(subscription: string, hoursAgo: number, pushed: number, missing: number) {
  const counts = { expected: pushed + missing, pushed, late: 0, recovered: 0, missing };
  const about = { comparedAtUs: nowUs, event: 'created' } as const;
  return { subscription, hourUs: nowUs - hoursAgo * hourUs, ...about, ...counts };
}

const hours: HourCoverage[] = [compared('alps', 2, 5, 0), compared('alps', 1, 3, 1)];

async function openCompared() {
  const world = await openConsole({
    completeness: createMemoryCompleteness({ definitions, hours }),
  });
  const delay = { count: 8, p50Ms: 1_500, p90Ms: 2_000, p99Ms: 3_000, maxMs: 4_000 };
  world.products.late = [
    {
      subscription: 'alps',
      sensingToPublication: delay,
      publicationToNotification: delay,
      notificationToReceipt: null,
    },
  ];
  return world;
}

describe('/api/coverage', () => {
  it('tells of each subscription and hour, and how late things were', async () => {
    const { get } = await openCompared();
    const { status, json } = await get(
      '/api/coverage?since=2026-05-02T08:30:00Z&subscription=alps',
    );
    expect(status).toBe(200);
    const none = { expected: 0, pushed: 0, late: 0, recovered: 0, missing: 0 };
    const hour = (at: number, state: string, counts: object = {}) => ({
      ...{ hour: `2026-05-02T${String(at).padStart(2, '0')}:00:00.000000Z`, state },
      ...{ ...none, ...counts },
    });
    const delay = { count: 8, p50: 1.5, p90: 2, p99: 3, max: 4 };
    expect(json).toEqual({
      since: '2026-05-02T08:00:00.000000Z',
      until: '2026-05-02T12:00:00.000000Z',
      missing: 1,
      comparison: { automatic: true, reason: null },
      subscriptions: [
        {
          subscription: 'alps',
          ...{ ...none, expected: 9, pushed: 8, missing: 1 },
          ...{ comparedHours: 2, unknownHours: 1, complete: 8 / 9, told: 8 / 9 },
          ...{ state: 'partly-compared', pendingHours: 0 },
          nextComparison: '2026-05-02T10:30:00.000000Z',
          hours: [
            hour(8, 'outside'),
            hour(9, 'unknown'),
            hour(10, 'pushed', { expected: 5, pushed: 5 }),
            hour(11, 'missing', { expected: 4, pushed: 3, missing: 1 }),
          ],
          delays: {
            sensingToPublication: delay,
            publicationToNotification: delay,
            notificationToReceipt: null,
          },
        },
      ],
    });
  });

  it('tells of the last seven days, of all subscriptions, unless told otherwise', async () => {
    const { get } = await openCompared();
    const { json } = await get('/api/coverage');
    expect(json).toMatchObject({
      since: '2026-04-25T12:00:00.000000Z',
      until: '2026-05-02T12:00:00.000000Z',
      missing: 1,
      comparison: { automatic: true, reason: null },
      subscriptions: [
        { subscription: 'alps' },
        { subscription: 'sea', complete: null, told: null, delays: null },
      ],
    });
    expect(json.subscriptions[1].hours).toHaveLength(7 * 24);
  });

  it('is empty where nothing was registered, and has no delays without an index', async () => {
    const empty = await openConsole();
    expect((await empty.get('/api/coverage')).json).toMatchObject({
      missing: 0,
      subscriptions: [],
    });
    const world = await openCompared();
    world.products.failure = new AppError('unavailable', 'There is no product index yet.');
    const { status, json } = await world.get('/api/coverage');
    expect(status).toBe(200);
    expect(json.subscriptions[0]).toMatchObject({ expected: 9, delays: null });
  });

  it('says of a failure of its own that it is one', async () => {
    const world = await openCompared();
    world.products.failure = new Error('broken');
    expect(await world.get('/api/coverage')).toMatchObject({ status: 500 });
  });

  it.each([
    ['since=2026-05-02&until=2026-05-01', 'since must lie before until'],
    ['since=2026-05-02T12:00:00Z', 'since must lie before until'],
    ['since=2027-01-01', 'since must lie before until'],
    ['since=2026-01-01', '100 days'],
    ['since=yesterday', 'since'],
    ['days=7', 'days'],
  ])('refuses %s', async (search, words) => {
    const { get } = await openCompared();
    const { status, text } = await get(`/api/coverage?${search}`);
    expect(status).toBe(400);
    expect(text).toContain(words);
  });

  it('is as the OpenAPI document describes it, field by field', async () => {
    const { get } = await openCompared();
    const document = (await get('/api/openapi.json')).json;
    const operation = document.paths['/api/coverage'].get;
    expect(operation.operationId).toBe('showCoverage');
    const names = operation.parameters.map(({ name }: { name: string }) => name);
    expect(names).toEqual(['since', 'until', 'subscription']);
    const { schema } = operation.responses[200].content['application/json'];
    const { json } = await get('/api/coverage');
    const strict = z.fromJSONSchema(closedSchema(schema));
    expect(strict.safeParse(json).error).toBeUndefined();
    const [one] = json.subscriptions;
    expect(strict.safeParse({ ...json, subscriptions: [{ ...one, hours: [{}] }] }).success).toBe(
      false,
    );
    expect(strict.safeParse({ ...json, other: 1 }).success).toBe(false);
  });
});
