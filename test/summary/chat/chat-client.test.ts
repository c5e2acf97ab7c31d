/**
 * The chat client against real servers: what it sends and reads, and which URLs it never requests.
 */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { AppError } from '../../../src/domain/app-error.ts';
import { createChatClient } from '../../../src/summary/chat/chat-client.ts';
import { startServer } from '../../http/answering-server.ts';
import {
  chatPath,
  clientOf,
  completionOf,
  faultOf,
  faultWith,
  key,
  model,
  modelsPath,
  neverAborted,
  request,
  startService,
} from './set-up.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const answered = async (body: unknown) => {
  const { client } = await startService({ body });
  return client.complete(request, neverAborted());
};

describe('the request', () => {
  it('follows the specification, and its headers reveal nothing about this machine', async () => {
    const { client, requests, host } = await startService({ body: completionOf('Yes.') });
    await client.complete(request, neverAborted());
    const [seen] = requests;
    expect([seen?.method, seen?.path, requests.length]).toEqual(['POST', chatPath, 1]);
    expect(JSON.parse(seen?.body ?? '')).toEqual(request);
    // Node's own fetch adds headers that reveal nothing.
    expect(seen?.headers).toEqual({
      accept: 'application/json',
      'accept-encoding': expect.any(String),
      'accept-language': '*',
      authorization: `Bearer ${key}`,
      connection: expect.any(String),
      'content-length': String(Buffer.byteLength(seen?.body ?? '')),
      'content-type': 'application/json',
      host,
      'sec-fetch-mode': 'cors',
      'user-agent': 'earshot',
    });
  });

  it('ignores the environment variables of the usual client library', async () => {
    const other = await startServer([{ body: completionOf('Wrong.') }]);
    for (const [name, value] of Object.entries({
      OPENAI_BASE_URL: `${other.url}/v1`,
      OPENAI_API_KEY: 'sk-environment',
      OPENAI_ADMIN_KEY: 'sk-admin-environment',
      OPENAI_ORG_ID: 'org-environment',
      OPENAI_PROJECT_ID: 'proj-environment',
      OPENAI_WEBHOOK_SECRET: 'hook-environment',
      OPENAI_CUSTOM_HEADERS: 'Authorization: Bearer environment\nX-Environment: environment',
      OPENAI_LOG: 'debug',
    })) {
      vi.stubEnv(name, value);
    }
    const spies = (['debug', 'info', 'warn', 'error', 'log'] as const).map((name) =>
      vi.spyOn(console, name),
    );
    const { client, requests } = await startService(
      { body: completionOf('Right.') },
      { body: { data: [] } },
    );
    expect((await client.complete(request, neverAborted())).text).toBe('Right.');
    expect(await client.models(neverAborted())).toEqual([]);
    expect(requests.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${key}`,
      `Bearer ${key}`,
    ]);
    expect(JSON.stringify(requests)).not.toContain('environment');
    expect(other.requests).toEqual([]);
    for (const spy of spies) expect(spy).not.toHaveBeenCalled();
  });

  it.each([503, 429, 408, 409])(
    'is sent once, whatever the answer (%i), even if the service asks for a retry',
    async (status) => {
      const headers = { 'x-should-retry': 'true', 'retry-after-ms': '1' };
      const { requests } = await faultWith({ status, headers });
      expect(requests.map(({ path }) => path)).toEqual([chatPath]);
    },
  );

  it.each(['', 'two words', 'line\nbreak', 'schlüssel'])(
    'is not sent with the key %j',
    async (apiKey) => {
      const { url, requests } = await startService({ body: completionOf('Yes.') });
      const client = clientOf(url, { apiKey });
      const { kind, message } = await faultOf(client.complete(request, neverAborted()));
      expect([kind, requests.length]).toEqual(['wrong_key', 0]);
      if (apiKey !== '') expect(message).not.toContain(apiKey);
      expect((await faultOf(client.models(neverAborted()))).kind).toBe('wrong_key');
    },
  );
});

describe('the key', () => {
  it.each([301, 302, 303, 307, 308])('is not sent to another origin (%i)', async (status) => {
    const elsewhere = await startServer([{ body: completionOf('Stolen.') }]);
    const headers = { location: `${elsewhere.url}/steal?key=1` };
    const redirect = { status, headers };
    const { client } = await startService(redirect, redirect);
    const calls = [
      () => client.complete(request, neverAborted()),
      () => client.models(neverAborted()),
    ];
    for (const call of calls) {
      const { kind, message } = await faultOf(call());
      expect(kind).toBe('redirected');
      expect(message).toContain(
        `redirects to ${elsewhere.url} (${status}). earshot does not follow`,
      );
      expect(message).not.toContain('steal');
    }
    expect(elsewhere.requests).toEqual([]);
  });

  it.each<[form: string, body: unknown]>([
    [
      'an error',
      { error: { message: `Incorrect API key provided: ${key}.`, code: key, type: key } },
    ],
    ['a detail', { detail: [{ loc: ['header', key], msg: `bad ${key}`, input: key }] }],
    ['a form of its own', { odd: { authorization: `Bearer ${key}` } }],
    ['a text', `Authorization: Bearer ${key}`],
    ['an address', `see /login?key=${encodeURIComponent(key)}`],
    ['a page', `<html><title>${key}</title><body>${key}</body></html>`],
    ['escapes', JSON.stringify({ odd: key }).replaceAll('/', '\\/').replaceAll('s', '\\u0073')],
    ['a long text, cut within it', `${'x'.repeat(190)}${key}`],
    ['its beginning', { error: { message: `Incorrect API key: ${key.slice(0, 20)}****.` } }],
    ['its end', { error: { message: `Incorrect API key: ****${key.slice(-12)}` } }],
    ['its beginning and its end', `key=${key.slice(0, 9)}...${key.slice(-9)} is wrong`],
    ['Base64', { detail: `Basic ${btoa(key)} is no token` }],
    ['a header in Base64', { detail: `got ${btoa(`Bearer ${key}`)}` }],
    ['Base64 for addresses', `got ${Buffer.from(`:${key}`).toString('base64url')}`],
  ])('is removed when the service repeats it in %s', async (_form, body) => {
    for (const status of [200, 400, 401, 404, 429, 500]) {
      const { message } = await faultWith({ status, body, headers: { 'x-echo': key } });
      expect(message).not.toMatch(/sk-secret|of\+mine|1234567890/);
      for (const form of [key, btoa(key), btoa(`Bearer ${key}`), btoa(`:${key}`)]) {
        // `QmVhcmVy` is `Bearer`.
        for (let at = form.startsWith('QmVhcmVy') ? 10 : 0; at + 10 < form.length; at += 1) {
          expect(message).not.toContain(form.slice(at, at + 10));
        }
      }
    }
  });

  it('is removed from texts and from the names of models', async () => {
    const body = completionOf(`Your key is ${key}.`);
    const { kind, message } = await faultWith({ body });
    expect([kind, message]).toEqual([
      'unexpected_form',
      'The inference service (HOST) returned a text that contains the API key. Replace the key, and contact the operator of the service.',
    ]);
    const { client } = await startService('cut', { body: { data: [{ id: `a/${key}` }] } });
    expect(await client.models(neverAborted())).toEqual(['a/…']);
  });
});

describe('an answer', () => {
  it('has the text, and the tokens if they are reported', async () => {
    const usage = { prompt_tokens: 40, completion_tokens: 2, total_tokens: 42 };
    expect(await answered(completionOf(' Größe: 5 m.\n', { usage }))).toEqual({
      text: 'Größe: 5 m.',
      totalTokens: 42,
    });
    expect(await answered(completionOf('Yes.'))).toEqual({ text: 'Yes.', totalTokens: null });
  });

  it.each([
    null,
    'many',
    {},
    { total_tokens: '42' },
    { total_tokens: -1 },
    { total_tokens: 1.5 },
    { total_tokens: 1e15 },
  ])('without valid token counts has none (%j)', async (usage) => {
    expect((await answered(completionOf('Yes.', { usage }))).totalTokens).toBeNull();
  });

  it('may have additional fields and any content type', async () => {
    const message = {
      role: 'assistant',
      content: 'Yes.',
      reasoning: 'Hm.',
      tool_calls: 7,
      refusal: null,
    };
    const choices = [{ message, finish_reason: 5, logprobs: [] }, 'odd'];
    const body = { id: 5, object: [], created: 'x', choices, usage: 'odd', error: null };
    expect((await answered(body)).text).toBe('Yes.');
    expect((await answered(JSON.stringify(body))).text).toBe('Yes.'); // as text/plain
    expect((await answered({ choices: [{ message: { content: 'Bare.' } }] })).text).toBe('Bare.');
    const parts = completionOf([{ type: 'text', text: '<think>Short.</think>Parts.' }]);
    expect((await answered(parts)).text).toBe('Parts.');
  });
});

describe('a call', () => {
  it('is cancelled at once by an abort, before it is sent and while it waits', async () => {
    const { client, requests } = await startService('hang', 'hang');
    const stopped = AbortSignal.abort(new Error(key));
    expect((await faultOf(client.complete(request, stopped))).kind).toBe('cancelled');
    expect((await faultOf(client.models(stopped))).kind).toBe('cancelled');
    expect(requests).toEqual([]);
    const controller = new AbortController();
    const waiting = faultOf(client.complete(request, controller.signal));
    await expect.poll(() => requests.length).toBe(1);
    controller.abort();
    expect((await waiting).message).toBe(
      'The request to the inference service was cancelled. Run the command again.',
    );
  });

  it('is also cancelled when the sender aborts it', async () => {
    const send = () => Promise.reject(new AppError('cancelled', 'Stopped.'));
    const client = createChatClient({ baseUrl: 'http://127.0.0.1:1', apiKey: key, fetch: send });
    expect((await faultOf(client.complete(request, neverAborted()))).kind).toBe('cancelled');
  });

  it('leaves no listener on a long-lived signal', async () => {
    const { client } = await startService({ body: completionOf('Yes.') });
    const warnings: string[] = [];
    const note = ({ name }: Error) => warnings.push(name);
    process.on('warning', note);
    const { signal } = new AbortController();
    for (let i = 0; i < 30; i += 1) await client.complete(request, signal);
    process.off('warning', note);
    expect(warnings).toEqual([]);
  });
});

describe('the models', () => {
  it('are listed by id, once each, without invalid entries', async () => {
    const data = [
      { id: model, object: 'model' },
      { id: 'b/c' },
      { id: 'b/c' },
      { id: '' },
      { id: 5 },
      null,
    ];
    const { client, requests } = await startService('cut', { body: { object: 'list', data } });
    expect(await client.models(neverAborted())).toEqual([model, 'b/c']);
    expect(requests.map((seen) => [seen.method, seen.path, seen.body])).toEqual([
      ['GET', modelsPath, ''],
    ]);
    expect(requests[0]?.headers.authorization).toBe(`Bearer ${key}`);
    expect(requests[0]?.headers['content-type']).toBeUndefined();
  });

  it('are truncated and cleaned, because they are foreign text', async () => {
    const data = [{ id: '\u001b[31mred' }, { id: 'x'.repeat(5_000) }];
    const { client } = await startService('cut', { body: { data } });
    expect(await client.models(neverAborted())).toEqual(['\\u001b[31mred', `${'x'.repeat(200)}…`]);
  });

  it.each<[how: string, answer: object]>([
    ['404', { status: 404, body: { detail: 'Not Found' } }],
    ['405', { status: 405 }],
    ['501', { status: 501 }],
    ['a web page', { body: '<html></html>' }],
    ['another form', { body: { models: [] } }],
  ])('are null when the service does not list them: %s', async (_how, answer) => {
    const { client } = await startService('cut', answer);
    expect(await client.models(neverAborted())).toBeNull();
  });

  it.each([
    [401, 'wrong_key'],
    [403, 'key_refused'],
    [429, 'rate_limited'],
    [500, 'service_error'],
    [400, 'request_refused'],
  ])('are refused with %i as %s', async (status, kind) => {
    const { client } = await startService('cut', { status, body: { error: 'the model' } });
    expect((await faultOf(client.models(neverAborted()))).kind).toBe(kind);
  });
});
