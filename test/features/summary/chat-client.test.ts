/** Answers of inference services: each has one clear outcome. */
import { describe, expect, it } from 'vitest';
import { createChatClient, inferenceFacts } from '../../../src/features/summary/chat-client.ts';

const apiKey = 'sk-0123456789abcdef';

const request = { model: 'a/b', messages: [{ role: 'user', content: 'Hello' }] } as const;

const neverAborted = new AbortController().signal;

/** A client of a service that gives one answer, or does not answer at all. */
function clientOf(
  answer: { status?: number; body?: unknown; headers?: Record<string, string> } | Error | 'hang',
) {
  const sent: Request[] = [];
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    const received = new Request(input, init);
    sent.push(received);
    if (answer === 'hang') {
      return new Promise<Response>((_, reject) => {
        received.signal.addEventListener('abort', () => reject(received.signal.reason));
      });
    }
    if (answer instanceof Error) throw answer;
    const { status = 200, body = '', headers = {} } = answer;
    return new Response(typeof body === 'string' ? body : JSON.stringify(body), {
      status,
      headers,
    });
  };
  const client = createChatClient({
    baseUrl: 'https://inference.example',
    apiKey,
    fetch,
    timeoutMs: 40,
  });
  return { client, sent };
}

const choices = (content: unknown, more: object = {}) => ({
  choices: [{ message: { content }, ...more }],
  usage: { total_tokens: 7 },
});

/** Returns the text, or the scope of the error. */
async function outcomeOf(answer: Parameters<typeof clientOf>[0], signal = neverAborted) {
  return clientOf(answer)
    .client.complete(request, signal)
    .then(
      ({ text }) => text,
      (error: unknown) => {
        expect(String(error)).not.toContain(apiKey);
        return inferenceFacts(error)?.scope;
      },
    );
}

const lost = Object.assign(new TypeError('fetch failed'), {
  cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }),
});

describe('the outcome of an answer', () => {
  it.each<[string, Parameters<typeof clientOf>[0], string]>([
    ['a text', { body: choices(' A {mission}. ') }, 'A {mission}.'],
    [
      'a list of parts',
      { body: choices(['A ', { type: 'text', text: '{b}.' }, { type: 'image' }]) },
      'A {b}.',
    ],
    [
      'reasoning parts',
      {
        body: choices([
          { type: 'reasoning', text: 'no' },
          { type: 'output_text', text: 'A.' },
        ]),
      },
      'A.',
    ],
    ['reasoning in the text', { body: choices('<think>I think</think>\nA.') }, 'A.'],
    ['only the end of reasoning', { body: choices('I think</think>A.') }, 'A.'],
    [
      'channels',
      {
        body: choices(
          '<|channel|>analysis<|message|>x<|end|><|channel|>final<|message|>A.<|return|>',
        ),
      },
      'A.',
    ],
    ['a stopped text', { body: choices('A.', { finish_reason: 'stop' }) }, 'A.'],
    ['empty choices', { body: { choices: [] } }, 'answer'],
    ['a null choice', { body: { choices: [null] } }, 'answer'],
    ['no content', { body: choices(null, { finish_reason: 'length' }) }, 'answer'],
    ['a cut text', { body: choices('A', { finish_reason: 'length' }) }, 'answer'],
    ['a filtered text', { body: choices('A', { finish_reason: 'content_filter' }) }, 'answer'],
    ['only reasoning', { body: choices('<think>I think</think>') }, 'answer'],
    ['an error with status 200', { body: { error: { message: 'overloaded' } } }, 'service'],
    ['a web page', { body: '<html><title>Login</title></html>' }, 'service'],
    ['JSON of another kind', { body: [1] }, 'service'],
    ['no body', {}, 'service'],
    ['a redirect', { status: 302, headers: { location: 'https://x.example' } }, 'settings'],
    [
      'a wrong key',
      { status: 401, body: { error: { message: `Wrong key ${apiKey.slice(0, 9)}` } } },
      'settings',
    ],
    ['a key of another project', { status: 403, body: { detail: 'no' } }, 'settings'],
    ['an unknown path', { status: 404, body: 'not found' }, 'settings'],
    [
      'an unknown model',
      { status: 400, body: { message: 'The model a/b does not exist' } },
      'settings',
    ],
    ['a long request', { status: 400, body: { message: 'model: too many tokens' } }, 'answer'],
    ['a refused request', { status: 422, body: { detail: 'no' } }, 'answer'],
    ['too many requests', { status: 429 }, 'service'],
    ['a broken service', { status: 502, body: '<html>' }, 'service'],
    ['a refused connection', lost, 'service'],
    ['no answer in time', 'hang', 'service'],
  ])('%s', async (_, answer, expected) => {
    expect(await outcomeOf(answer)).toBe(expected);
  });

  it('is the caller for an aborted request', async () => {
    const stop = new AbortController();
    const pending = outcomeOf('hang', stop.signal);
    stop.abort();
    expect(await pending).toBe('caller');
  });
});

it('sends exactly the documented request', async () => {
  const { client, sent } = clientOf({ body: choices('A.') });
  expect(await client.complete(request, neverAborted)).toEqual({ text: 'A.', tokens: 7 });
  const [one] = sent;
  expect(one?.url).toBe('https://inference.example/openai/v1/chat/completions');
  expect(one?.headers.get('authorization')).toBe(`Bearer ${apiKey}`);
  expect(await one?.json()).toEqual(request);
});

it.each([
  ['30', 30_000],
  ['Sun, 29 Nov 2026 12:00:30 GMT', 30_000],
  ['soon', null],
])('reports Retry-After: %s', async (value, ms) => {
  const headers = { 'retry-after': value, date: 'Sun, 29 Nov 2026 12:00:00 GMT' };
  const error = await clientOf({ status: 429, headers })
    .client.complete(request, neverAborted)
    .catch((one: unknown) => one);
  expect(inferenceFacts(error)).toMatchObject({ status: 429, retryAfterMs: ms });
});

it.each([
  [{ body: { data: [{ id: 'a/b' }, { id: `x${apiKey}` }] } }, ['a/b', 'x…']],
  [{ status: 404 }, null],
  [{ body: 'no list' }, null],
])('lists the models: %j', async (answer, expected) => {
  expect(await clientOf(answer).client.models(neverAborted)).toEqual(expected);
});

it('never sends a key with invalid characters', async () => {
  const client = createChatClient({ baseUrl: 'https://x.example', apiKey: 'a\nb', fetch });
  const error = await client.complete(request, neverAborted).catch((one: unknown) => one);
  expect(inferenceFacts(error)?.scope).toBe('settings');
  expect(String(error)).not.toContain('a\nb');
});
