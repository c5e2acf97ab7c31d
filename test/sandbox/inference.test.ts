/** The inference service of the sandbox, against the specification (inference service), and its faults. */
import { expect, it } from 'vitest';
import type { InferenceSettingsInput } from '../../src/sandbox/settings.ts';
import { send, startTestSandbox } from './set-up.ts';

const key = 'sandbox-key';
const model = 'openai/gpt-oss-120b';
const facts = '{mission}: Sentinel-2B\n{place}: Poland\n{sensed}: 20 May 2026\n{cloud}: 12.3 %';
const sentence = 'A product of {mission} over {place}, sensed {sensed}.';

async function startInference(settings: InferenceSettingsInput = {}) {
  const { sandbox } = await startTestSandbox({ inference: settings });
  const url = `${sandbox.inferenceUrl}/openai/v1/chat/completions`;
  const ask = (content = facts, changes: object = {}, bearer = key) => {
    const messages = [
      { role: 'system', content: 'Write {place}.' },
      { role: 'user', content },
    ];
    const body = { model, messages, ...changes };
    return send(url, 'POST', body, { Authorization: `Bearer ${bearer}` });
  };
  return { ...sandbox.inference, url, ask };
}

it.each([
  ['a product', facts, sentence],
  ['a digest', '{count}: 12 products\n{place}: Poland', '{count} over {place}.'],
  ['a type', '{type}: radar\n{mission}: S1', 'A {type} product of {mission}.'],
  ['other facts', '{size}: 3 MB\n\nA remark.', 'The product is {size}.'],
  ['no facts', 'Reply with OK. {place}', 'There is nothing to report.'],
])(
  'an answer about %s has only names of the prompt, and is the same each time',
  async (_, prompt, text) => {
    const { ask } = await startInference();
    const { status, json } = await ask(prompt);
    expect([status, json.choices[0].message.content]).toEqual([200, text]);
    expect((await ask(prompt)).json).toEqual(json);
  },
);

it.each<[string, object, string, number]>([
  ['with an unknown key', {}, 'wrong', 401],
  ['with a model of another project', { model: 'mistralai/x' }, key, 404],
  ['without messages', { messages: [] }, key, 400],
])('a request %s is refused', async (_, changes, bearer, status) => {
  const { ask } = await startInference();
  const { json, ...answer } = await ask(facts, changes, bearer);
  const error = expect.objectContaining({ message: expect.any(String) });
  expect([answer.status, json]).toEqual([status, { error }]);
});

it.each([
  ['rateLimited', 429, { error: expect.anything() }],
  ['serverError', 503, { error: expect.anything() }],
  ['cut', 200, { choices: [{ message: { content: sentence.slice(0, 26) } }] }],
] as const)('the fault %s changes one answer', async (fault, status, body) => {
  const { ask, change, totals } = await startInference();
  change({ next: { [fault]: 1 } });
  const { headers, json, ...answer } = await ask();
  expect([answer.status, json]).toMatchObject([status, body]);
  expect(headers.get('retry-after')).toBe(fault === 'rateLimited' ? '20' : null);
  expect((await ask()).json.choices[0].message.content).toBe(sentence);
  expect(totals().outcomes).toEqual({ [fault]: 1, answered: 1 });
});

it('the fault hang gives no answer until the client disconnects', async () => {
  const { url, totals } = await startInference({ next: { hang: 1 } });
  const signal = AbortSignal.timeout(300);
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: facts }] });
  const headers = { Authorization: `Bearer ${key}` };
  const asked = fetch(url, { method: 'POST', headers, body, signal });
  await expect.poll(() => totals().inFlight).toBe(1);
  await expect(asked).rejects.toThrow();
  await expect.poll(totals).toMatchObject({ inFlight: 0, outcomes: { hang: 1 } });
});
