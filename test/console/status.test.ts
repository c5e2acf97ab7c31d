/** `/api/status`, as a program uses it, and as the OpenAPI document describes it. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { closedSchema } from './closed-schema.ts';
import { openConsole } from './console-world.ts';
import { createMemoryCompleteness } from './memory-completeness.ts';
import { emptyStatus, sampleStatus } from './status-sample.ts';

describe('/api/status', () => {
  it('tells of facts and judgement, with times in ISO 8601', async () => {
    const { get } = await openConsole({ status: async () => sampleStatus(true) });
    const { status, json, headers } = await get('/api/status');
    expect({ status, kept: headers['cache-control'] }).toEqual({ status: 200, kept: 'no-store' });
    expect(json).toMatchObject({
      ...{ at: '2026-05-02T13:00:00.000000Z', version: '0.2.0', well: false },
      failures: [{ part: 'disk', reason: 'It does not say.' }],
      receiver: { refusing: 'The disk is full.', queue: { bytes: 1_001, bytesMax: 2_001 } },
      log: { usedBytes: 3_001, lastPosition: 6_001, pruned: { position: 9 } },
      certificate: { lifetimeSeconds: 90 * 86_400 + 0.000001 },
      coverage: [{ subscription: 'alps', missing: 19 }],
      readers: [{ name: 'product index', of: 'index', behind: 1_001 }, { of: 'sink' }],
      backups: { made: { bytes: 25_001 }, failed: { error: 'There is no room.' }, everyHours: 25 },
      alerts: [{ kind: 'disk', severity: 'warning', nextStep: 'Make room.' }],
    });
    expect(json.parts).toContainEqual({
      ...{ part: 'disk', level: 'critical', text: 'All is well.', nextStep: null },
    });
  });

  it('is well when every part is, or is not in use', async () => {
    const { get } = await openConsole();
    expect((await get('/api/status')).json.well).toBe(true);
  });

  it.each([
    ['with all that may be there', () => sampleStatus(true)],
    ['with nothing that need not be', emptyStatus],
  ])('is as the OpenAPI document describes it, field by field, %s', async (_, made) => {
    const { get } = await openConsole({ status: async () => made() });
    const operation = (await get('/api/openapi.json')).json.paths['/api/status'].get;
    expect(operation).toMatchObject({ operationId: 'showStatus', parameters: [] });
    const { schema } = operation.responses[200].content['application/json'];
    const { json } = await get('/api/status');
    const strict = z.fromJSONSchema(closedSchema(schema));
    expect(strict.safeParse(json).error).toBeUndefined();
    expect(strict.safeParse({ ...json, other: 1 }).success).toBe(false);
    expect(strict.safeParse({ ...json, at: 'now' }).success).toBe(false);
  });

  it('takes no parameters, and no other method', async () => {
    const { get } = await openConsole();
    expect(await get('/api/status?part=disk')).toMatchObject({ status: 400 });
    expect(await get('/api/status', { method: 'POST' })).toMatchObject({ status: 405 });
  });

  it('does not wait in the line of those who ask the log', async () => {
    const hanging = Promise.withResolvers<never>();
    const completeness = {
      definitions: () => hanging.promise,
      coverage: () => hanging.promise,
    };
    const world = await openConsole({
      completeness: { ...createMemoryCompleteness(), ...completeness },
      limits: { atOnceMax: 1, waitingMax: 1 },
    });
    const waiting = world.get('/api/coverage').catch(() => null);
    expect((await world.get('/api/status')).status).toBe(200);
    hanging.reject(new Error('enough'));
    await waiting;
  });
});
