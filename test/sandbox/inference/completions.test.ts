/** The inference service as it is specified: keys, projects, models, completions; and what is left open. */
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { SandboxConfigurationError } from '../../../src/sandbox/configuration-error.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import { startMs } from '../account-world.ts';
import {
  demoModels,
  key,
  messageOf,
  model,
  otherKey,
  otherModel,
  rightText,
  startInferenceWorld,
  textOf,
} from './inference-world.ts';

describe('a completion', () => {
  it('repeats facts of the request, in the documented form', async () => {
    const { ask } = await startInferenceWorld();
    const { status, headers, json } = await ask();
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(headers.get('date')).toBe(new Date(startMs).toUTCString());
    expect(json).toMatchObject({ object: 'chat.completion', model, created: startMs / 1000 });
    expect(json.choices).toMatchObject([
      { message: { role: 'assistant', content: rightText }, finish_reason: 'stop' },
    ]);
    const { prompt_tokens: asked, completion_tokens: given, total_tokens: total } = json.usage;
    expect([asked > 50, given > 10, total]).toEqual([true, true, asked + given]);
    expect(json.choices[0].message).not.toHaveProperty('reasoning');
  });

  it('is the same for the same request, in another sandbox too', async () => {
    const worlds = await Promise.all([startInferenceWorld(), startInferenceWorld({ seed: 7 })]);
    const [one, other] = await Promise.all(worlds.map(({ ask }) => ask()));
    expect(one?.text).toBe(other?.text);
    const { ask } = worlds[0];
    expect((await ask()).text).toBe(one?.text);
    expect((await ask({ content: messageOf({ place: 'Malta' }) })).text).not.toBe(one?.text);
  });

  it('is understood by the usual client, and so are the models and an error', async () => {
    const { sandbox, url } = await startInferenceWorld();
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
    ['no JSON', 'nonsense'],
    ['no messages', JSON.stringify({ model })],
    ['an empty list of messages', JSON.stringify({ model, messages: [] })],
    ['a message without text', JSON.stringify({ model, messages: [{ role: 'user' }] })],
    ['no model', JSON.stringify({ messages: [{ role: 'user', content: 'x' }] })],
  ])('is refused for a body with %s', async (_title, body) => {
    const { post, inference } = await startInferenceWorld();
    const { status, json } = await post(body);
    expect([status, json.error.type]).toEqual([400, 'invalid_request_error']);
    expect(inference.totals().outcomes).toEqual({ refused: 1 });
  });

  it('is refused for a body of more than a mebibyte', async () => {
    const { post } = await startInferenceWorld();
    expect((await post('x'.repeat(1024 * 1024 + 1))).status).toBe(413);
  });

  it('is asked for at its path, by its method', async () => {
    const { url, sandbox } = await startInferenceWorld();
    const wrong = await fetch(`${url}/chat/completions`);
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST']);
    const { status } = await fetch(`${sandbox.inferenceUrl}/v1/chat/completions`, {
      method: 'POST',
    });
    expect(status).toBe(404);
  });
});

describe('a key', () => {
  it.each([null, 'nobodys-key', `${key}x`, ''])('that is %j is refused', async (wrong) => {
    const { ask, inference } = await startInferenceWorld();
    const { status, json } = await ask({ key: wrong });
    expect([status, json.error.code]).toEqual([401, 'invalid_api_key']);
    expect(inference.totals().outcomes).toEqual({ unauthorized: 1 });
  });

  it('of another project brings the models of that one, and no others', async () => {
    const { ask, models } = await startInferenceWorld();
    const listed = async (given: string) =>
      (await models(given)).json.data.map(({ id }: { id: string }) => id);
    expect(await listed(key)).toEqual(demoModels);
    expect(await listed(otherKey)).toEqual([otherModel]);
    expect((await ask({ key: otherKey, model: otherModel })).status).toBe(200);
    for (const mixed of [{ key: otherKey, model }, { model: otherModel }]) {
      const { status, json } = await ask(mixed);
      expect([status, json.error.code]).toEqual([404, 'model_not_found']);
      expect(json.error.message).toContain(mixed.model);
    }
  });

  it('is needed to list models', async () => {
    const { models } = await startInferenceWorld();
    expect((await models('nobodys-key')).status).toBe(401);
  });

  it('can be chosen, with its project', async () => {
    const mine = { name: 'mine', key: 'my-key', models: ['me/mine'] };
    const { ask } = await startInferenceWorld({ inferenceProjects: [mine] });
    expect((await ask({ key: 'my-key', model: 'me/mine' })).status).toBe(200);
    expect((await ask()).status).toBe(401);
  });

  it.each([
    [[{ name: 'a', key: 'two words', models: [] }], 'inferenceProjects.0.key'],
    [[{ name: 'a', key: 'k', models: ['no-vendor'] }], 'inferenceProjects.0.models.0'],
    [['a', 'b'].map((name) => ({ name, key: 'k', models: [] })), 'two projects have one key'],
    [['k', 'l'].map((one) => ({ name: 'a', key: one, models: [] })), 'have one name'],
  ])('and project must fit: %j', async (inferenceProjects, message) => {
    const starting = startSandbox({ inferenceProjects, now: Date.now });
    await expect(starting).rejects.toThrow(SandboxConfigurationError);
    await expect(starting).rejects.toThrow(message);
  });
});

describe('a knob changes', () => {
  it('the statuses of a wrong key and of a model', async () => {
    const inference = { unauthorizedStatus: 403, modelUnavailableStatus: 400 };
    const { ask } = await startInferenceWorld({ inference });
    expect((await ask({ key: null })).status).toBe(403);
    expect((await ask({ model: otherModel })).status).toBe(400);
  });

  it('the form of errors', async () => {
    const { ask, inference } = await startInferenceWorld();
    const message = expect.stringContaining(otherModel);
    const type = 'invalid_request_error';
    const said = async (errorForm: 'openai' | 'object' | 'detail' | 'html') => {
      inference.change({ errorForm });
      const { status, json, text, headers } = await ask({ model: otherModel });
      expect(status).toBe(404);
      return json ?? [headers.get('content-type'), text];
    };
    const code = 'model_not_found';
    expect(await said('openai')).toEqual({ error: { message, type, param: null, code } });
    const object = { object: 'error', message, type, param: null, code: 404 };
    expect(await said('object')).toEqual(object);
    expect(await said('detail')).toEqual({ detail: message });
    const page = expect.stringMatching(/^<!doctype html>.*does not exist/);
    expect(await said('html')).toEqual(['text/html; charset=utf-8', page]);
  });

  it('whether models are listed', async () => {
    const { models } = await startInferenceWorld({ inference: { modelsListed: false } });
    expect((await models()).status).toBe(404);
  });

  it('whether fields that are not specified are taken', async () => {
    const { ask, inference } = await startInferenceWorld();
    const extra = { temperature: 0 };
    expect((await ask({ extra })).status).toBe(200);
    inference.change({ optionalFields: 'refused' });
    const { status, json } = await ask({ extra });
    expect(status).toBe(400);
    expect(json.error.message).toContain('temperature');
    expect((await ask()).status).toBe(200);
  });

  it('the fields beside the content', async () => {
    const settings = { usageGiven: false, reasoningGiven: true };
    const { ask } = await startInferenceWorld({ inference: settings });
    const answer = await ask();
    expect(answer.json).not.toHaveProperty('usage');
    expect(answer.json.choices[0].message.reasoning).toEqual(expect.any(String));
    expect(textOf(answer)).toBe(rightText);
  });
});
