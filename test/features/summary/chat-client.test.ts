/** Answers of inference services: each has one clear outcome. */
import { describe, expect, it } from 'vitest';
import { createChatClient, inferenceFacts } from '../../../src/features/summary/chat-client.ts';

const apiKey = 'sk-0123456789abcdef';

const request = { model: 'a/b', messages: [{ role: 'user', content: 'Hello' }] } as const;

const neverAborted = new AbortController().signal;

/** Requests without an answer: a connection holds them, and otherwise nothing does. */
const hanging: Request[] = [];

/** A client of a service that gives one answer, or does not answer at all. */
function clientOf(
  answer: { status?: number; body?: unknown; headers?: Record<string, string> } | Error | 'hang',
) {
  const sent: Request[] = [];
  const fetch = async (input: string | URL | Request, init?: RequestInit) => {
    const received = new Request(input, init);
    sent.push(received);
    if (answer === 'hang') {
      hanging.push(received);
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
  const parts = ['A ', { type: 'text', text: '{b}.' }, { type: 'image' }];
  const reasoning = [
    { type: 'reasoning', text: 'no' },
    { type: 'output_text', text: 'A.' },
  ];
  const channels = '<|channel|>analysis<|message|>x<|end|><|channel|>final<|message|>A.<|return|>';
  const wrongKey = { message: `Wrong key ${apiKey.slice(0, 9)}` };
  const ended = (content: string | null, finish_reason: string) =>
    choices(content, { finish_reason });
  it.each<[string, body: unknown, text: string]>([
    ['a text', choices(' A {mission}. '), 'A {mission}.'],
    ['a list of parts', choices(parts), 'A {b}.'],
    ['reasoning parts', choices(reasoning), 'A.'],
    ['reasoning in the text', choices('<think>I think</think>\nA.'), 'A.'],
    ['only the end of reasoning', choices('I think</think>A.'), 'A.'],
    ['channels', choices(channels), 'A.'],
    ['a stopped text', ended('A.', 'stop'), 'A.'],
    ['empty choices', { choices: [] }, 'answer'],
    ['a null choice', { choices: [null] }, 'answer'],
    ['no content', ended(null, 'length'), 'answer'],
    ['a cut text', ended('A', 'length'), 'answer'],
    ['a filtered text', ended('A', 'content_filter'), 'answer'],
    ['only reasoning', choices('<think>I think</think>'), 'answer'],
    ['an error with status 200', { error: { message: 'overloaded' } }, 'service'],
    ['a web page', '<html><title>Login</title></html>', 'service'],
    ['JSON of another kind', [1], 'service'],
    ['no body', '', 'service'],
  ])('of %s is its text, or the scope of the failure', async (_, body, expected) => {
    expect(await outcomeOf({ body })).toBe(expected);
  });

  it.each<[string, Parameters<typeof clientOf>[0], scope: string]>([
    ['a redirect', { status: 302, headers: { location: 'https://x.example' } }, 'settings'],
    ['a wrong key', { status: 401, body: { error: wrongKey } }, 'settings'],
    ['a key of another project', { status: 403, body: { detail: 'no' } }, 'settings'],
    ['an unknown path', { status: 404, body: 'not found' }, 'settings'],
    ['an unknown model', { status: 400, body: { message: 'The model a/b does not' } }, 'settings'],
    ['a long request', { status: 400, body: { message: 'model: too many tokens' } }, 'answer'],
    ['a refused request', { status: 422, body: { detail: 'no' } }, 'answer'],
    ['too many requests', { status: 429 }, 'service'],
    ['a broken service', { status: 502, body: '<html>' }, 'service'],
    ['a refused connection', lost, 'service'],
    ['no answer in time', 'hang', 'service'],
  ])('of %s is the scope of the failure', async (_, answer, expected) => {
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

it('never sends a key with invalid characters', async () => {
  const client = createChatClient({ baseUrl: 'https://x.example', apiKey: 'a\nb', fetch });
  const error = await client.complete(request, neverAborted).catch((one: unknown) => one);
  expect(inferenceFacts(error)?.scope).toBe('settings');
  expect(String(error)).not.toContain('a\nb');
});
