/** The inference service of the sandbox, against the specification (inference service), and its faults. */
import { describe, expect, it } from 'vitest';
import type { InferenceSettingsInput } from '../../src/sandbox/live-settings.ts';
import { send, startTestSandbox } from './set-up.ts';

const key = 'sandbox-key';
const model = 'openai/gpt-oss-120b';
const facts = '{mission}: Sentinel-2B\n{place}: Poland\n{sensed}: 20 May 2026\n{cloud}: 12.3 %';
const sentence = 'A product of {mission} over {place}, sensed {sensed}.';

async function startInference(settings: InferenceSettingsInput = {}) {
  const { sandbox } = await startTestSandbox({ inference: settings });
  const url = `${sandbox.inferenceUrl}/openai/v1`;
  const post = (body: unknown, bearer = key) =>
    send(`${url}/chat/completions`, 'POST', body, { Authorization: `Bearer ${bearer}` });
  const ask = (content = facts, changes: object = {}, bearer = key) => {
    const messages = [
      { role: 'system', content: 'Write {place}.' },
      { role: 'user', content },
    ];
    return post({ model, messages, ...changes }, bearer);
  };
  return { ...sandbox.inference, url, post, ask };
}

describe('an answer', () => {
  it.each([
    ['a product', facts, sentence],
    ['a digest', '{count}: 12 products\n{place}: Poland', '{count} over {place}.'],
    ['a type', '{type}: radar\n{mission}: S1', 'A {type} product of {mission}.'],
    ['other facts', '{size}: 3 MB\n\nA remark.', 'The product is {size}.'],
    ['no facts', 'Reply with OK. {place}', 'There is nothing to report.'],
  ])(
    'about %s has only names of the prompt, and is the same each time',
    async (_, prompt, text) => {
      const { ask, totals } = await startInference();
      const { status, json } = await ask(prompt);
      expect([status, json.choices[0].message.content]).toEqual([200, text]);
      expect((await ask(prompt)).json).toEqual(json);
      expect(totals()).toMatchObject({ requests: 2, distinct: 1, repeated: 1, inFlightMax: 1 });
    },
  );
});

it.each<[string, object, string, number]>([
  ['with an unknown key', {}, 'wrong', 401],
  ['with a model of another project', { model: 'mistralai/x' }, key, 404],
  ['without messages', { messages: [] }, key, 400],
])('a request %s is refused', async (_, changes, bearer, status) => {
  const { ask, totals } = await startInference();
  const { json, ...answer } = await ask(facts, changes, bearer);
  const error = expect.objectContaining({ message: expect.any(String) });
  expect([answer.status, json]).toEqual([status, { error }]);
  expect(totals().distinct).toBe(0);
});

describe('the fault', () => {
  it.each([
    ['unauthorized', 401],
    ['modelUnavailable', 404],
    ['rateLimited', 429],
    ['serverError', 503],
    ['errorWithStatus200', 200],
  ] as const)('%s replaces one answer by an error, with status %i', async (fault, status) => {
    const { ask, change, totals } = await startInference();
    change({ next: { [fault]: 1 }, retryAfterSeconds: 7 });
    const { headers, json, ...answer } = await ask();
    expect([answer.status, json]).toEqual([status, { error: expect.anything() }]);
    expect(headers.get('retry-after')).toBe(fault === 'rateLimited' ? '7' : null);
    expect((await ask()).json.choices[0].message.content).toBe(sentence);
    expect(totals().outcomes).toEqual({ [fault]: 1, answered: 1 });
  });

  it.each<[string, object[]]>([
    ['noChoices', []],
    ['emptyContent', [{ message: { content: '' } }]],
    ['contentParts', [{ message: { content: [{ type: 'text', text: sentence }] } }]],
    [
      'reasoning',
      [{ message: { content: expect.stringMatching(/^<think>.*<\/think>\s+A product/) } }],
    ],
    ['cut', [{ message: { content: sentence.slice(0, 26) }, finish_reason: 'length' }]],
    ['inventedNumber', [{ message: { content: `${sentence} It has 4711 bands.` } }]],
    ['inventedName', [{ message: { content: `${sentence} It shows {harbour_name}.` } }]],
  ])('%s changes the choices', async (fault, choices) => {
    const { ask } = await startInference({ faults: { [fault]: 1 } });
    const { status, json } = await ask();
    expect([status, json.choices]).toMatchObject([200, choices]);
    expect(json.choices).toHaveLength(choices.length);
  });

  it('hang gives no answer until the client disconnects', async () => {
    const { url, totals } = await startInference({ next: { hang: 1 } });
    const signal = AbortSignal.timeout(300);
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: facts }] });
    const headers = { Authorization: `Bearer ${key}` };
    const asked = fetch(`${url}/chat/completions`, { method: 'POST', headers, body, signal });
    await expect.poll(() => totals().inFlight).toBe(1);
    await expect(asked).rejects.toThrow();
    await expect.poll(totals).toMatchObject({ inFlight: 0, outcomes: { hang: 1 } });
  });

  it('appears with its probability, the same for the same seed and request', async () => {
    const outcomesOf = async () => {
      const { ask } = await startInference({ faults: { serverError: 0.5 } });
      const prompts = Array.from({ length: 20 }, (_, index) => `{size}: ${index}`);
      return Promise.all(prompts.map(async (prompt) => (await ask(prompt)).status));
    };
    const statuses = await outcomesOf();
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect(await outcomesOf()).toEqual(statuses);
  });
});
