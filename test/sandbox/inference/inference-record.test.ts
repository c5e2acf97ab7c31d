/** What is remembered of requests to the inference service, and how it is steered on the control port. */
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createInferenceRecord } from '../../../src/sandbox/inference/inference-app.ts';
import {
  inferenceFaults,
  inferenceSettingsSchema,
} from '../../../src/sandbox/inference/inference-settings.ts';
import { startMs } from '../account-world.ts';
import {
  key,
  messageOf,
  model,
  otherKey,
  otherModel,
  startInferenceWorld,
} from './inference-world.ts';

describe('the record of requests', () => {
  it('tells what was asked, by whom and what came of it, without key and text', async () => {
    const { ask, models, inference, sandbox, control } = await startInferenceWorld();
    const content = messageOf({ product: 'a file nobody else has' });
    await ask({ content });
    sandbox.clock.advance(1_500);
    await ask({ key: otherKey, model, content });
    await ask({ key: 'secret-of-nobody' });
    await models(otherKey);
    const path = '/openai/v1/chat/completions';
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/);
    const asked = { method: 'POST', path, model, userCharacters: content.length, digest };
    const at = new Date(startMs + 1_500).toISOString();
    const nothing = { model: null, userCharacters: 0, digest: null, at };
    expect(inference.requests()).toEqual([
      {
        ...asked,
        at: new Date(startMs).toISOString(),
        project: 'demo',
        outcome: 'answered',
        status: 200,
      },
      { ...asked, at, project: 'other', outcome: 'modelUnavailable', status: 404 },
      { ...nothing, method: 'POST', path, project: null, outcome: 'unauthorized', status: 401 },
      {
        ...nothing,
        method: 'GET',
        path: '/openai/v1/models',
        project: 'other',
        outcome: 'listed',
        status: 200,
      },
    ]);
    const { json, text } = await control('GET', '/inference/requests');
    expect(json).toEqual({ requests: inference.requests(), totals: inference.totals() });
    for (const secret of [key, otherKey, 'secret-of-nobody', 'nobody else']) {
      expect(text).not.toContain(secret);
    }
  });

  it('counts how often the very same request was answered, and not what was not answered', async () => {
    const { ask, inference } = await startInferenceWorld({
      inference: { next: { serverError: 1 } },
    });
    await ask();
    await ask();
    await ask({ content: messageOf({ product: 'another' }) });
    await ask({ model: 'meta-llama/Llama-3.3-70B-Instruct' });
    expect(inference.totals()).toMatchObject({ requests: 4, distinct: 3, repeated: 0 });
    await ask();
    await ask({ key: null });
    const outcomes = { serverError: 1, answered: 4, unauthorized: 1 };
    expect(inference.totals()).toMatchObject({ requests: 6, distinct: 3, repeated: 1, outcomes });
    const digests = inference.requests().map(({ digest }) => digest);
    expect([digests[0] === digests[1], digests[0] === digests[2]]).toEqual([true, false]);
  });

  it('knows a client that did not wait for the answer from one that was answered', async () => {
    const { ask, inference } = await startInferenceWorld({ inference: { answerDelayMs: 60_000 } });
    const leaving = new AbortController();
    const asking = ask({ signal: leaving.signal });
    await expect.poll(() => inference.totals().inFlight).toBe(1);
    expect(inference.requests()).toMatchObject([{ outcome: null, status: null }]);
    leaving.abort();
    await expect(asking).rejects.toThrow();
    await expect.poll(() => inference.totals().outcomes).toEqual({ abandoned: 1 });
    expect(inference.totals()).toMatchObject({ inFlight: 0, distinct: 0 });
  });

  it('knows a client that did not finish its request', async () => {
    const { inference, sandbox } = await startInferenceWorld();
    const { hostname, port } = new URL(sandbox.inferenceUrl);
    const socket = connect(Number(port), hostname);
    const path = '/openai/v1/chat/completions';
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`;
    socket.write(`${head}Content-Length: 100\r\n\r\n{"model":`);
    await expect.poll(() => inference.totals().inFlight).toBe(1);
    socket.destroy();
    await expect.poll(() => inference.totals().outcomes).toEqual({ abandoned: 1 });
    expect(inference.totals().inFlight).toBe(0);
  });

  it('keeps the last thousand requests, and counts all', () => {
    const record = createInferenceRecord();
    for (let number = 0; number < 1_005; number += 1) {
      record.open({ at: '', method: 'GET', path: `/${number}` });
    }
    const requests = record.requests();
    expect([requests.length, requests[0]?.path]).toEqual([1_000, '/5']);
    expect(record.totals().requests).toBe(1_005);
  });
});

describe('the knobs of the inference service', () => {
  it('are told on the control port with their defaults, all faults 0', async () => {
    const { control, sandbox } = await startInferenceWorld();
    const { status, json } = await control('GET', '/inference');
    expect([status, json]).toEqual([200, inferenceSettingsSchema.parse({})]);
    const none = Object.fromEntries(inferenceFaults.map((name) => [name, 0]));
    expect(json).toMatchObject({ faults: none, next: none });
    const { json: about } = await control('GET', '/');
    expect(about.inferenceUrl).toBe(sandbox.inferenceUrl);
    expect(about.operations).toHaveProperty('PATCH /inference');
  });

  it('are turned one by one, faults too, and the others stay', async () => {
    const { control, inference, ask } = await startInferenceWorld({
      inference: { errorForm: 'detail' },
    });
    await control('PATCH', '/inference', { faults: { hang: 0.25 }, next: { rateLimited: 2 } });
    await control('PATCH', '/inference', { faults: { markup: 0.5 }, retryAfterSeconds: 3 });
    expect(inference.current()).toMatchObject({
      errorForm: 'detail',
      retryAfterSeconds: 3,
      faults: { markup: 0.5, hang: 0.25, cut: 0 },
      next: { rateLimited: 2, cut: 0 },
    });
    const { status, headers, json } = await ask();
    expect([status, headers.get('retry-after')]).toEqual([429, '3']);
    expect(json).toEqual({ detail: expect.any(String) });
  });

  it.each([
    [{ answerDelay: 1 }, 'answerDelay'],
    [{ unauthorizedStatus: 200 }, 'unauthorizedStatus'],
    [{ errorForm: 'xml' }, 'errorForm'],
    [{ faults: { typo: 1 } }, 'faults.typo'],
    [{ faults: { hang: 2 } }, 'faults.hang'],
    [{ faults: null }, 'faults'],
    [{ faults: [] }, 'faults'],
    [{ next: { hang: 0.5 } }, 'next.hang'],
    [{ next: { hang: null } }, 'next.hang'],
  ])('refuse %j and change nothing', async (changes, field) => {
    const { control, inference } = await startInferenceWorld();
    const before = inference.current();
    const { status, json } = await control('PATCH', '/inference', changes);
    expect(status).toBe(400);
    expect(json.errors).toEqual([{ field, message: expect.any(String) }]);
    // The cast lets a test make the mistakes that the types forbid.
    expect(() => inference.change(changes as object)).toThrow(field.split('.').at(-1));
    expect(inference.current()).toEqual(before);
  });
});

describe('the port of the inference service', () => {
  it('is an origin of its own', async () => {
    const { sandbox } = await startInferenceWorld();
    const { inferenceUrl, catalogueUrl, controlUrl } = sandbox;
    expect(inferenceUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(new Set([inferenceUrl, catalogueUrl, controlUrl]).size).toBe(3);
    expect((await fetch(`${catalogueUrl}/openai/v1/models`)).status).toBe(404);
  });

  it('is closed with the sandbox, hanging answers included', async () => {
    const { sandbox, ask, inference } = await startInferenceWorld({
      inference: { faults: { hang: 1 } },
    });
    const hanging = ask({ model: otherModel, key: otherKey });
    await expect.poll(() => inference.totals().outcomes).toEqual({ hang: 1 });
    await Promise.all([sandbox.close(), expect(hanging).rejects.toThrow()]);
    await expect(fetch(sandbox.inferenceUrl)).rejects.toThrow();
  });
});
