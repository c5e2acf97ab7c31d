/** Every way in which the service can refuse, fail or return no text has its own message. */
import { describe, expect, it } from 'vitest';
import { answerBytesMax } from '../../../src/http/bounded-fetch.ts';
import { faultScope, inferenceFaultKinds } from '../../../src/summary/chat/inference-fault.ts';
import { rowsOf } from '../../filter/table.ts';
import { freePort } from '../../helpers/free-ports.ts';
import type { Answer } from '../../http/answering-server.ts';
import {
  clientOf,
  completionOf,
  faultOf,
  faultWith,
  model,
  neverAborted,
  request,
  startService,
} from './set-up.ts';

const error = (message: string, code: unknown = null) => ({
  error: { message, type: 'invalid_request_error', param: null, code },
});
const page = '<!doctype html><html><head><title>404\n Not Found</title></head></html>';
const listed = (...ids: string[]): Answer => ({ body: { data: ids.map((id) => ({ id })) } });
const urlAdvice = `Check that EARSHOT_INFERENCE_URL is the URL before /openai/v1, and that the project of the key has the model ${model}.`;
const modelAdvice =
  'Set EARSHOT_INFERENCE_MODEL to a model that the control panel of the service lists for the project.';

/** Answers by problem. */
const answers: Readonly<Record<string, Answer>> = {
  'a wrong key': { status: 401, body: error('Incorrect API key provided.', 'invalid_api_key') },
  'a key of another project': { status: 403, body: { detail: 'Forbidden for this project' } },
  'a model that is not available': {
    status: 404,
    body: { object: 'error', message: `The model ${model} does not exist.`, code: 404 },
  },
  'an address where nothing is': { status: 404, body: page },
  'a 404 that names no model': { status: 404, body: { detail: 'Not Found' } },
  'a redirect without a place': { status: 302 },
  'too many requests': {
    status: 429,
    headers: { 'retry-after': '90' },
    body: { error: 'Slow down' },
  },
  'an error of the service': { status: 503, body: '' },
  'a request that it will not answer': {
    status: 400,
    body: error(`This model's maximum context length is 8192 tokens.`),
  },
  'a web page instead of JSON': { status: 200, body: '<html><title>Welcome</title></html>' },
  'JSON of another form': { status: 200, body: error('Overloaded') },
  'an answer without a text': { body: completionOf(null) },
  'an answer that was cut': { body: completionOf('It was', {}, 'length') },
};

/** Problem ¦ kind ¦ message. */
const refusals = rowsOf(`
  a wrong key ¦ wrong_key ¦ The inference service (HOST) does not accept the key (401). Response: "Incorrect API key provided". Check EARSHOT_INFERENCE_API_KEY. A key is shown only once: if the key is lost, create a new key in the control panel.
  a key of another project ¦ key_refused ¦ The inference service (HOST) refuses this key (403). Response: "Forbidden for this project". The key may belong to another project or lack a permission. The control panel shows the keys of each project.
  a model that is not available ¦ model_unavailable ¦ The model ${model} is not available to the project of the key at the inference service (HOST) (404). Response: "The model ${model} does not exist". ${modelAdvice}
  an address where nothing is ¦ model_unavailable ¦ There is no API at /openai/v1 of the inference service (HOST) (404). Response: "(a web page) 404 Not Found". ${urlAdvice}
  a 404 that names no model ¦ model_unavailable ¦ There is no API at /openai/v1 of the inference service (HOST) (404). Response: "Not Found". ${urlAdvice}
  a redirect without a place ¦ redirected ¦ The inference service (HOST) redirects to another URL (302). earshot does not follow redirects, to protect the key. Check EARSHOT_INFERENCE_URL.
  too many requests ¦ rate_limited ¦ The inference service (HOST) received too many requests (429). Response: "Slow down". Retry in 90 s. If this repeats, lower EARSHOT_SUMMARY_REQUESTS_PER_HOUR.
  an error of the service ¦ service_error ¦ The inference service (HOST) is temporarily unavailable (503). Retry later.
  a request that it will not answer ¦ request_refused ¦ The inference service (HOST) rejects this request (400). Response: "This model's maximum context length is 8192 tokens". A retry of the same request would also fail.
  a web page instead of JSON ¦ not_json ¦ The inference service (HOST) returned an answer that is not JSON (200). Response: "(a web page) Welcome". Check EARSHOT_INFERENCE_URL.
  JSON of another form ¦ unexpected_form ¦ The inference service (HOST) returned JSON that is not the answer of a chat model (200). Response: "Overloaded". Check EARSHOT_INFERENCE_URL.
  an answer without a text ¦ empty ¦ The inference service (HOST) returned no text. Retry, or choose another model.
  an answer that was cut ¦ cut ¦ The inference service (HOST) truncated the text at the model's maximum length. Retry, or choose another model.
`);

describe('a refusal', () => {
  it.each(refusals)('for %s has its own message', async (name = '', kind = '', message = '') => {
    const answer = answers[name];
    if (answer === undefined) throw new Error(`no answer for ${name}`);
    expect(await faultWith(answer)).toMatchObject({ kind, message });
  });

  it.each<[status: number, kind: string]>([
    [402, 'key_refused'],
    [405, 'model_unavailable'],
    [408, 'service_error'],
    [409, 'service_error'],
    [410, 'model_unavailable'],
    [413, 'request_refused'],
    [418, 'request_refused'],
    [422, 'request_refused'],
    [425, 'service_error'],
    [500, 'service_error'],
    [529, 'service_error'],
  ])('with %i and without text is %s', async (status, kind) => {
    for (const body of [undefined, {}, [], 'null', '{"error":']) {
      expect((await faultWith({ status, body })).kind).toBe(kind);
    }
  });

  it.each<[status: number, body: unknown]>([
    [400, error(`The model \`${model}\` does not exist or you do not have access to it.`)],
    [400, error('nothing known', 'model_not_found')],
    [400, { detail: `Unknown model: ${model}` }],
    [400, { object: 'error', message: `${model} is no model of ours`, type: 'NotFoundError' }],
    [403, error(`Project p has no access to model ${model}`, 'model_not_found')],
    [
      422,
      { detail: [{ type: 'enum', loc: ['body', 'model'], msg: 'Input should be …', input: 'x' }] },
    ],
    [404, { error: { message: 'No such model', type: 5, code: {} } }],
  ])('with %i and this text concerns the model: %j', async (status, body) => {
    expect(await faultWith({ status, body })).toMatchObject({
      kind: 'model_unavailable',
      message: expect.stringContaining(`The model ${model} is not available`),
    });
  });

  it('for the model lists the available models', async () => {
    const answer = { status: 404, body: error('no such model') };
    const { message, requests } = await faultWith(answer, listed('a/b', 'c/d'));
    expect(message).toMatch(/Set EARSHOT_INFERENCE_MODEL to one of these: a\/b, c\/d\.$/);
    expect(requests).toHaveLength(2);
    const many = Array.from({ length: 25 }, (_, index) => `a/${index}`);
    expect((await faultWith(answer, listed(...many))).message).toMatch(
      /a\/18, a\/19 and 5 more\.$/,
    );
    expect((await faultWith(answer, listed())).message).toMatch(/lists no model for this key/);
    for (const models of [listed(model), { status: 500 }, 'cut'] as const) {
      expect((await faultWith(answer, models)).message).toContain(modelAdvice);
    }
  });

  it('with a bare 404 concerns the model when the models are listed, because the address is then right', async () => {
    const { message } = await faultWith({ status: 404 }, listed('a/b'));
    expect(message).toMatch(/^The model .* is not available .* one of these: a\/b\.$/);
  });

  it.each<[headers: Record<string, string>, ms: number | null]>([
    [{}, null],
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after': 'soon' }, null],
    [
      {
        date: 'Fri, 01 May 2026 12:00:00 GMT',
        'retry-after': 'Fri, 01 May 2026 12:01:30 GMT',
      },
      90_000,
    ],
  ])('returns the requested wait (%j)', async (headers, ms) => {
    for (const status of [429, 503]) {
      expect((await faultWith({ status, headers })).retryAfterMs).toBe(ms);
    }
  });

  it('quotes only a few lines of foreign text, without control characters', async () => {
    const long = await faultWith({
      status: 400,
      body: error(`\u001b[2J\u202e${'x'.repeat(9_000)}`),
    });
    expect(long.message).toContain('Response: "\\u001b[2J\\u202exxx');
    expect(long.message.length).toBeLessThan(700);
    const raw = await faultWith({ status: 500, body: 'y'.repeat(9_000) });
    expect(raw.message.length).toBeLessThan(400);
  });
});

describe('the kinds of faults', () => {
  it('all have a scope', () => {
    const scopes = Object.groupBy(inferenceFaultKinds, faultScope);
    expect(scopes).toEqual({
      settings: ['wrong_key', 'key_refused', 'model_unavailable', 'redirected'],
      service: [
        'rate_limited',
        'service_error',
        'timeout',
        'unreachable',
        'not_json',
        'unexpected_form',
      ],
      job: ['request_refused', 'empty', 'cut'],
      caller: ['cancelled'],
    });
  });
});

describe('an unusable answer', () => {
  it.each(['', '{"choices":[', 'data: {}\n\n', '\u0000'])('is not JSON: %j', async (body) => {
    expect((await faultWith({ body })).kind).toBe('not_json');
  });

  it.each<unknown>([
    [],
    {},
    { choices: null },
    { choices: ['odd'] },
    { choices: [null] },
    { choices: [{ text: 'old form' }] },
    completionOf([1]),
    '"text"',
    '5',
    'null',
  ])('has another form: %j', async (body) => {
    expect((await faultWith({ body })).kind).toBe('unexpected_form');
  });

  it.each([null, undefined, '', ' \n\t '])('is empty with the content %j', async (content) => {
    const { kind, tokens } = await faultWith({
      body: completionOf(content, { usage: { total_tokens: 9 } }),
    });
    expect([kind, tokens]).toEqual(['empty', 9]);
  });

  it('is empty without a choice, and cut by the length limit or a content filter', async () => {
    expect((await faultWith({ body: { choices: [] } })).kind).toBe('empty');
    const thought = completionOf(null, { usage: { total_tokens: 4_096 } }, 'length');
    expect(await faultWith({ body: thought })).toMatchObject({ kind: 'cut', tokens: 4_096 });
    const filtered = await faultWith({ body: completionOf('It', {}, 'content_filter') });
    expect([filtered.kind, filtered.message]).toEqual([
      'cut',
      expect.stringContaining('its content filter'),
    ]);
  });

  it('exceeds the limits', async () => {
    for (const status of [200, 500]) {
      const huge = await faultWith({ status, body: 'x'.repeat(answerBytesMax + 1) });
      expect([huge.kind, huge.message]).toEqual([
        'unexpected_form',
        'The inference service (HOST) returned an unusable answer: the response is larger than 1048576 bytes. Check EARSHOT_INFERENCE_URL.',
      ]);
    }
    const deep = '['.repeat(200_000) + ']'.repeat(200_000);
    for (const [status, body] of [
      [200, deep],
      [400, deep],
      [400, `{"error":{"message":"m","deep":${deep}}}`],
      [200, `{"choices":[{"message":{"content":${deep}}}]}`],
    ] as const) {
      const { kind } = await faultWith({
        status,
        body,
        headers: { 'content-type': 'application/json' },
      });
      expect(['unexpected_form', 'request_refused']).toContain(kind);
    }
  });
});

describe('no answer', () => {
  const dripping: Answer = (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const drip = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(drip));
  };

  it.each<[how: string, answer: Answer]>([
    ['comes', 'hang'],
    ['ends, though it drips', dripping],
  ])(
    '%s: that is a timeout',
    async (_how, answer) => {
      const { url, host } = await startService(answer);
      const fault = await faultOf(
        clientOf(url, { timeoutMs: 200 }).complete(request, neverAborted()),
      );
      expect([fault.kind, fault.message]).toEqual([
        'timeout',
        `The inference service (${host}) did not complete its answer within 0.2 s. Retry later. If this happens again, choose a faster model.`,
      ]);
    },
    2_000,
  );

  it.each<[how: string, answer: Answer]>([
    ['before', 'cut'],
    [
      'within',
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
        response.write('{"choices":', () => response.destroy());
      },
    ],
  ])('after a connection that breaks %s it is unreachable', async (_how, answer) => {
    const { kind, message } = await faultWith(answer);
    expect(kind).toBe('unreachable');
    expect(message).toMatch(
      /cannot be reached: the connection was lost \(\w+\)\. Retry later\. If this happens again, check EARSHOT_INFERENCE_URL\.$/,
    );
  });

  it('from a closed port is unreachable, too', async () => {
    const host = `127.0.0.1:${await freePort()}`;
    const fault = await faultOf(clientOf(`http://${host}`).complete(request, neverAborted()));
    expect([fault.kind, fault.message]).toEqual([
      'unreachable',
      `The inference service (${host}) cannot be reached: the connection was refused (ECONNREFUSED). Retry later. If this happens again, check EARSHOT_INFERENCE_URL.`,
    ]);
  });
});
