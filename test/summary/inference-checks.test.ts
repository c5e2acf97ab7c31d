/** The doctor's checks of the inference service: the key, and the model of its project. */
import { describe, expect, it } from 'vitest';
import { checkInference } from '../../src/summary/inference-checks.ts';
import type { Answer } from '../http/answering-server.ts';
import {
  chatPath,
  clientOf,
  completionOf,
  key,
  model,
  neverAborted,
  startService,
} from './chat/set-up.ts';

const listed = (...ids: string[]): Answer => ({ body: { data: ids.map((id) => ({ id })) } });
const refused = (status: number, words = '') => ({ status, body: { error: { message: words } } });
const unlisted = { status: 404 };

/** Findings of the doctor, and the completions that it requested. */
async function findingsWith(models: Answer, chat: Answer = 'cut') {
  const { client, requests } = await startService(chat, models);
  const findings = await checkInference({ client, model, signal: neverAborted() });
  const states = findings.map(({ check, state }) => [check, state]);
  expect(JSON.stringify(findings)).not.toContain(key);
  expect(findings.every((one) => ['pass', 'skipped'].includes(one.state) || one.advice)).toBe(true);
  const asked = requests.filter(({ path }) => path === chatPath);
  return { findings, states: Object.fromEntries(states), asked };
}

describe('a service that lists its models', () => {
  it('passes without a completion when the model is listed', async () => {
    const { findings, asked } = await findingsWith(listed('a/b', model));
    expect(findings).toEqual([
      {
        check: 'inference key',
        state: 'pass',
        message: 'The service accepts the key and lists 2 models.',
      },
      { check: 'inference model', state: 'pass', message: `The service lists ${model}.` },
    ]);
    expect(asked).toEqual([]);
  });

  it('fails when the model is not listed, and lists the available models', async () => {
    const { findings, asked } = await findingsWith(listed('a/b'));
    expect(findings).toEqual([
      {
        check: 'inference key',
        state: 'pass',
        message: 'The service accepts the key and lists one model.',
      },
      {
        check: 'inference model',
        state: 'fail',
        message: `The service does not list ${model} for this key.`,
        advice: 'Set EARSHOT_INFERENCE_MODEL to one of these: a/b.',
      },
    ]);
    expect(asked).toEqual([]);
    const none = await findingsWith(listed());
    expect(none.findings[1]?.advice).toContain('lists no model for this key');
  });
});

describe('a service that does not list its models', () => {
  it.each([unlisted, refused(403), refused(400), { body: '<html></html>' }])(
    'is asked for one word (%j)',
    async (models) => {
      const { states, asked } = await findingsWith(models, { body: completionOf('ready') });
      expect(states).toEqual({ 'inference key': 'pass', 'inference model': 'pass' });
      expect(asked).toHaveLength(1);
      expect(asked[0]?.body.length).toBeLessThan(300);
    },
  );

  it.each<[name: string, chat: Answer, key: string, model: string, words: string]>([
    ['the key is wrong', refused(401), 'fail', 'skipped', 'EARSHOT_INFERENCE_API_KEY'],
    ['the key is of another project', refused(403), 'fail', 'skipped', 'another project'],
    ['the model is not there', refused(404, 'no such model'), 'skipped', 'fail', 'not available'],
    ['nothing is there', unlisted, 'skipped', 'fail', 'EARSHOT_INFERENCE_URL'],
    ['the request is refused', refused(400, 'odd'), 'pass', 'warn', 'odd'],
    ['the text is empty', { body: completionOf('') }, 'pass', 'warn', 'returned no text'],
    [
      'the text is cut',
      { body: completionOf('r', {}, 'length') },
      'pass',
      'warn',
      'truncated the text',
    ],
    ['it is asked too often', refused(429), 'warn', 'skipped', 'too many requests'],
    ['it is out of order', refused(500), 'fail', 'skipped', 'temporarily unavailable'],
    ['it is a web page', { body: '<html></html>' }, 'fail', 'skipped', 'not JSON'],
  ])('is checked by its answer when %s', async (_name, chat, keyState, modelState, words) => {
    const { findings, states } = await findingsWith(unlisted, chat);
    expect(states).toEqual({ 'inference key': keyState, 'inference model': modelState });
    expect(JSON.stringify(findings)).toContain(words);
  });
});

describe('a service that refuses to list its models', () => {
  it.each<[name: string, models: Answer, state: string, words: string]>([
    ['a wrong key', refused(401), 'fail', 'does not accept the key'],
    [
      'a redirect',
      { status: 302, headers: { location: 'https://x.example/' } },
      'fail',
      'x.example',
    ],
    ['too many requests', refused(429), 'warn', 'too many requests'],
    ['a broken connection', 'cut', 'fail', 'the connection was lost'],
  ])('is not asked for a word after %s', async (_name, models, state, words) => {
    const { findings, states, asked } = await findingsWith(models);
    expect(states).toEqual({ 'inference key': state, 'inference model': 'skipped' });
    expect(findings[0]?.message).toContain(words);
    expect(asked).toEqual([]);
  });

  it('neither blocks the doctor nor fails when the check is aborted', async () => {
    const { url, client } = await startService('hang', 'hang');
    const slow = clientOf(url, { timeoutMs: 100 });
    const [late] = await checkInference({ client: slow, model, signal: neverAborted() });
    expect(late).toMatchObject({ state: 'fail', message: expect.stringContaining('within 0.1 s') });
    const stopped = await checkInference({ client, model, signal: AbortSignal.abort() });
    expect(stopped.map(({ state }) => state)).toEqual(['skipped', 'skipped']);
  });

  it('reveals nothing of an unexpected error', async () => {
    const broken = () => Promise.reject(new TypeError(key));
    const client = { complete: broken, models: broken };
    const findings = await checkInference({ client, model, signal: neverAborted() });
    expect(findings[0]).toMatchObject({ state: 'fail', advice: 'Please report it.' });
    expect(JSON.stringify(findings)).not.toContain(key);
  });
});
