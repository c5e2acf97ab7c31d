/** The inference service: keys, projects, models, completions, texts from facts, request record and settings. */
import { connect } from 'node:net';
import fc from 'fast-check';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { answerText } from '../../src/sandbox/inference/answer.ts';
import { createInferenceRecord } from '../../src/sandbox/inference/inference-app.ts';
import { inferenceFaults, inferenceSettingsSchema } from '../../src/sandbox/live-settings.ts';
import {
  demoModels,
  iso,
  key,
  messageOf,
  model,
  otherKey,
  otherModel,
  rightText,
  startInference,
  startMs,
  textOf,
} from './set-up.ts';

const neutral = 'There is nothing to report about this request.';
const product = {
  subject: 'product',
  satellite: 'Sentinel-2B',
  content: 'surface reflectance',
  name: 'S2B_MSIL2A_20240520T101559_N0510_R065_T34UCF_20240520T121203.SAFE',
  'sensing start': '20 May 2024 10:15 UTC',
  'cloud cover': '12.3 %',
  place: 'mostly Poland, with a small part of Slovakia',
};
const written = (given: unknown) => answerText(messageOf(given));

describe('the text', () => {
  it.each<[object, string]>([
    [
      product,
      'This product of Sentinel-2B holds surface reflectance. It was sensed on 20 May 2024 10:15 UTC. It covers mostly Poland, with a small part of Slovakia.',
    ],
    [
      {
        subject: 'auxiliary file',
        content: 'precise orbits',
        'valid from': '10 April 2014 22:59 UTC',
      },
      'This auxiliary file holds precise orbits. It is valid from 10 April 2014 22:59 UTC on.',
    ],
    [
      { satellite: 'Sentinel-1A', 'deletion date': '1 January 2026 00:00 UTC' },
      'This product is of Sentinel-1A. It was deleted on 1 January 2026 00:00 UTC.',
    ],
    [
      {
        'time of receipt': '20 May 2024 00:00 UTC to 21 May 2024 00:00 UTC',
        products: '380 products',
        'products by collection': 'Sentinel-2 (300) and Sentinel-1 (80)',
        'seas, with the products over them': 'the Baltic Sea (12)',
      },
      'Between 20 May 2024 00:00 UTC and 21 May 2024 00:00 UTC, 380 products arrived. They cover the Baltic Sea (12). The collections are Sentinel-2 (300) and Sentinel-1 (80).',
    ],
    [{ size: '2 GB.', orbits: '12 and 13' }, 'The size is 2 GB. The orbits are 12 and 13.'],
  ])('from %o is readable English', (given, text) => {
    expect(written(given)).toBe(text);
  });

  it('is the same for every input form of the facts', () => {
    const list = Object.entries(product).map(([label, text]) => ({ label, text }));
    const nested = [product, list].map((one) => ({ kind: 'product', facts: one }));
    expect(new Set([product, list, ...nested].map(written)).size).toBe(1);
    expect(written(product)).not.toBe(neutral);
  });

  it.each([
    'Hello.',
    '<facts>{"a":"b"}',
    '<facts>{"a":</facts>',
    '<facts>null</facts>',
    '<facts>7</facts>',
    '<facts>{"a":1,"b":null,"c":{"d":"e"},"f":" "}</facts>',
    '<facts>[null,[],{"label":"a"},{"text":"b"}]</facts>',
  ])('is empty when there are no facts: %s', (message) => {
    expect(answerText(message)).toBe(neutral);
  });

  it('has only numbers and names of the facts, and at most three sentences', () => {
    const labels = [...Object.keys(product), 'deletion date', 'products', 'valid from', 'size'];
    const word = fc.stringMatching(/^[A-Za-z0-9]{1,8}$/);
    const text = fc.oneof(
      fc.array(word, { minLength: 1, maxLength: 5 }).map((words) => words.join(' ')),
      fc.constant('20 May 2024 10:15 UTC'),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...labels), text, { minKeys: 1 }), (given) => {
        const answer = written(given);
        const known = Object.values(given).flatMap((one) => one.split(/\W+/));
        const special = answer.split(/\W+/).filter((one) => /[A-Z0-9]/.test(one));
        const openers = ['It', 'This', 'The', 'They', 'Between'];
        expect(special.filter((one) => !known.includes(one) && !openers.includes(one))).toEqual([]);
        expect(answer.split(/\.(?: |$)/).length).toBeLessThanOrEqual(4);
        expect(Object.values(given).some((one) => answer.includes(one))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});

describe('a completion', () => {
  it('repeats facts of the request, in the documented form', async () => {
    const { ask } = await startInference();
    const { status, headers, json } = await ask();
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(headers.get('date')).toBe(new Date(startMs).toUTCString());
    expect(json).toMatchObject({ object: 'chat.completion', model, created: startMs / 1000 });
    const message = { role: 'assistant', content: rightText };
    expect(json.choices).toMatchObject([{ message, finish_reason: 'stop' }]);
    const { prompt_tokens: asked, completion_tokens: given, total_tokens: total } = json.usage;
    expect([asked > 50, given > 10, total]).toEqual([true, true, asked + given]);
    expect(json.choices[0].message).not.toHaveProperty('reasoning');
  });

  it('is the same for the same request, even in another sandbox', async () => {
    const { ask } = await startInference();
    const other = await startInference({}, { seed: 7 });
    const { text } = await ask();
    expect([(await ask()).text, (await other.ask()).text]).toEqual([text, text]);
    expect((await ask({ content: messageOf({ place: 'Malta' }) })).text).not.toBe(text);
  });

  it('can be read by the OpenAI client, as can models and errors', async () => {
    const { sandbox, url } = await startInference();
    const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: messageOf({ product: 'an orbit file' }) }];
    const completion = await client.chat.completions.create({ model, messages });
    expect(completion.choices[0]?.message.content).toBe('The product is an orbit file.');
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(demoModels);
    sandbox.inference.change({ next: { rateLimited: 1 } });
    const refused = client.chat.completions.create({ model, messages });
    await expect(refused).rejects.toThrow(OpenAI.RateLimitError);
  });

  it.each([
    'nonsense',
    JSON.stringify({ model }),
    JSON.stringify({ model, messages: [] }),
    JSON.stringify({ model, messages: [{ role: 'user' }] }),
    JSON.stringify({ messages: [{ role: 'user', content: 'x' }] }),
  ])('is refused for the body %s', async (body) => {
    const { post, inference } = await startInference();
    const { status, json } = await post(body);
    expect([status, json.error.type]).toEqual([400, 'invalid_request_error']);
    expect(inference.totals().outcomes).toEqual({ refused: 1 });
  });

  it('requires its path, its method, and a body of less than 1 MiB', async () => {
    const { url, sandbox, post } = await startInference();
    const wrong = await fetch(`${url}/chat/completions`);
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST']);
    const other = `${sandbox.inferenceUrl}/v1/chat/completions`;
    expect((await fetch(other, { method: 'POST' })).status).toBe(404);
    expect((await post('x'.repeat(1024 * 1024 + 1))).status).toBe(413);
  });
});

describe('a key', () => {
  it.each([null, 'nobodys-key', `${key}x`, ''])('that is %j is refused', async (wrong) => {
    const { ask, inference } = await startInference();
    const { status, json } = await ask({ key: wrong });
    expect([status, json.error.code]).toEqual([401, 'invalid_api_key']);
    expect(inference.totals().outcomes).toEqual({ unauthorized: 1 });
  });

  it('gives access to the models of its project only', async () => {
    const { ask, models } = await startInference();
    const listed = async (given: string) =>
      (await models(given)).json.data.map(({ id }: { id: string }) => id);
    expect(await listed(key)).toEqual(demoModels);
    expect(await listed(otherKey)).toEqual([otherModel]);
    expect((await models('nobodys-key')).status).toBe(401);
    expect((await ask({ key: otherKey, model: otherModel })).status).toBe(200);
    for (const mixed of [{ key: otherKey, model }, { model: otherModel }]) {
      const { status, json } = await ask(mixed);
      expect([status, json.error.code]).toEqual([404, 'model_not_found']);
      expect(json.error.message).toContain(mixed.model);
    }
  });
});

describe('a setting changes', () => {
  it('the statuses of a wrong key and of a model, and whether models are listed', async () => {
    const statuses = { unauthorizedStatus: 403, modelUnavailableStatus: 400, modelsListed: false };
    const { ask, models } = await startInference(statuses);
    expect((await ask({ key: null })).status).toBe(403);
    expect((await ask({ model: otherModel })).status).toBe(400);
    expect((await models()).status).toBe(404);
  });

  it('the form of errors', async () => {
    const { ask, inference } = await startInference();
    const message = expect.stringContaining(otherModel);
    const known = { message, type: 'invalid_request_error', param: null };
    const page = expect.stringMatching(/^<!doctype html>.*does not exist/);
    for (const [errorForm, expected] of [
      ['openai', { error: { ...known, code: 'model_not_found' } }],
      ['object', { object: 'error', ...known, code: 404 }],
      ['detail', { detail: message }],
      ['html', ['text/html; charset=utf-8', page]],
    ] as const) {
      inference.change({ errorForm });
      const { status, json, text, headers } = await ask({ model: otherModel });
      expect([status, json ?? [headers.get('content-type'), text]]).toEqual([404, expected]);
    }
  });

  it('whether fields that are not specified are accepted', async () => {
    const { ask, inference } = await startInference();
    const extra = { temperature: 0 };
    expect((await ask({ extra })).status).toBe(200);
    inference.change({ optionalFields: 'refused' });
    const { status, json } = await ask({ extra });
    expect([status, json.error.message]).toEqual([400, expect.stringContaining('temperature')]);
    expect((await ask()).status).toBe(200);
  });

  it('the fields next to the content', async () => {
    const { ask } = await startInference({ usageGiven: false, reasoningGiven: true });
    const answer = await ask();
    expect(answer.json).not.toHaveProperty('usage');
    expect(answer.json.choices[0].message.reasoning).toEqual(expect.any(String));
    expect(textOf(answer)).toBe(rightText);
  });
});

describe('the request record', () => {
  it('contains the requests, their projects and outcomes, without keys and texts', async () => {
    const { ask, models, inference, sandbox, control } = await startInference();
    const content = messageOf({ product: 'a file nobody else has' });
    await ask({ content });
    sandbox.clock.advance(1_500);
    await ask({ key: otherKey, model, content });
    await ask({ key: 'secret-of-nobody' });
    await models(otherKey);
    const path = '/openai/v1/chat/completions';
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/);
    const asked = { method: 'POST', path, model, userCharacters: content.length, digest };
    const nothing = { model: null, userCharacters: 0, digest: null };
    const [first, later] = [{ at: iso(startMs) }, { at: iso(startMs + 1_500) }];
    const listed = { method: 'GET', path: '/openai/v1/models', outcome: 'listed', status: 200 };
    const unauthorized = { method: 'POST', path, outcome: 'unauthorized', status: 401 };
    expect(inference.requests()).toEqual([
      { ...first, ...asked, project: 'demo', outcome: 'answered', status: 200 },
      { ...later, ...asked, project: 'other', outcome: 'modelUnavailable', status: 404 },
      { ...later, ...nothing, ...unauthorized, project: null },
      { ...later, ...nothing, ...listed, project: 'other' },
    ]);
    const { json, text } = await control('GET', '/inference/requests');
    expect(json).toEqual({ requests: inference.requests(), totals: inference.totals() });
    for (const secret of [key, otherKey, 'secret-of-nobody', 'nobody else']) {
      expect(text).not.toContain(secret);
    }
  });

  it('counts how often an identical request was answered, ignoring unanswered ones', async () => {
    const { ask, inference } = await startInference({ next: { serverError: 1 } });
    await ask();
    await ask();
    await ask({ content: messageOf({ product: 'another' }) });
    await ask({ model: 'meta-llama/Llama-3.3-70B-Instruct' });
    expect(inference.totals()).toMatchObject({ requests: 4, distinct: 3, repeated: 0 });
    await ask();
    await ask({ key: null });
    const outcomes = { serverError: 1, answered: 4, unauthorized: 1 };
    expect(inference.totals()).toMatchObject({ requests: 6, distinct: 3, repeated: 1, outcomes });
    const [one, again, other] = inference.requests().map(({ digest }) => digest);
    expect([one === again, one === other]).toEqual([true, false]);
  });

  it('records clients that disconnected before the answer or before the end of their request', async () => {
    const { ask, inference, sandbox } = await startInference({ answerDelayMs: 60_000 });
    const leaving = new AbortController();
    const asking = ask({ signal: leaving.signal });
    await expect.poll(() => inference.totals().inFlight).toBe(1);
    expect(inference.requests()).toMatchObject([{ outcome: null, status: null }]);
    leaving.abort();
    await expect(asking).rejects.toThrow();
    await expect.poll(() => inference.totals().outcomes).toEqual({ abandoned: 1 });
    expect(inference.totals()).toMatchObject({ inFlight: 0, distinct: 0 });
    const { hostname, port } = new URL(sandbox.inferenceUrl);
    const socket = connect(Number(port), hostname);
    const path = '/openai/v1/chat/completions';
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n`;
    socket.write(`${head}Content-Length: 100\r\n\r\n{"model":`);
    await expect.poll(() => inference.totals().inFlight).toBe(1);
    socket.destroy();
    await expect.poll(() => inference.totals().outcomes).toEqual({ abandoned: 2 });
    expect(inference.totals().inFlight).toBe(0);
  });

  it('keeps the last thousand requests and counts all', () => {
    const record = createInferenceRecord();
    for (let number = 0; number < 1_005; number += 1) {
      record.open({ at: '', method: 'GET', path: `/${number}` });
    }
    const requests = record.requests();
    expect([requests.length, requests[0]?.path]).toEqual([1_000, '/5']);
    expect(record.totals().requests).toBe(1_005);
  });
});

describe('the settings', () => {
  it('are shown on the control port with their defaults, all faults 0', async () => {
    const { control, sandbox } = await startInference();
    const { status, json } = await control('GET', '/inference');
    expect([status, json]).toEqual([200, inferenceSettingsSchema.parse({})]);
    const none = Object.fromEntries(inferenceFaults.map((name) => [name, 0]));
    expect(json).toMatchObject({ faults: none, next: none });
    const { json: about } = await control('GET', '/');
    expect(about.inferenceUrl).toBe(sandbox.inferenceUrl);
    expect(about.operations).toHaveProperty('PATCH /inference');
  });

  it('can be changed one by one, including faults, and leave the others unchanged', async () => {
    const { control, inference, ask } = await startInference({ errorForm: 'detail' });
    await control('PATCH', '/inference', { faults: { hang: 0.25 }, next: { rateLimited: 2 } });
    await control('PATCH', '/inference', { faults: { markup: 0.5 }, retryAfterSeconds: 3 });
    const [faults, next] = [
      { markup: 0.5, hang: 0.25, cut: 0 },
      { rateLimited: 2, cut: 0 },
    ];
    const expected = { errorForm: 'detail', retryAfterSeconds: 3, faults, next };
    expect(inference.current()).toMatchObject(expected);
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
    const { control, inference } = await startInference();
    const before = inference.current();
    const { status, json } = await control('PATCH', '/inference', changes);
    expect([status, json.errors]).toEqual([400, [{ field, message: expect.any(String) }]]);
    // The cast permits invalid values that the types forbid.
    expect(() => inference.change(changes as object)).toThrow(field.split('.').at(-1));
    expect(inference.current()).toEqual(before);
  });
});

it('the inference service has its own origin and closes with the sandbox, including hanging answers', async () => {
  const { sandbox, ask, inference } = await startInference({ faults: { hang: 1 } });
  const { inferenceUrl, catalogueUrl, controlUrl } = sandbox;
  expect(inferenceUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(new Set([inferenceUrl, catalogueUrl, controlUrl]).size).toBe(3);
  expect((await fetch(`${catalogueUrl}/openai/v1/models`)).status).toBe(404);
  const hanging = ask({ model: otherModel, key: otherKey });
  await expect.poll(() => inference.totals().outcomes).toEqual({ hang: 1 });
  await Promise.all([sandbox.close(), expect(hanging).rejects.toThrow()]);
  await expect(fetch(inferenceUrl)).rejects.toThrow();
});
