/** Answers that hold no text, answers beyond all bounds, and none at all. */
import { describe, expect, it } from 'vitest';
import { answerBytesMax } from '../../../src/http/bounded-fetch.ts';
import { freePort } from '../../helpers/free-ports.ts';
import type { Answer } from '../../http/answering-server.ts';
import {
  clientOf,
  completionOf,
  faultOf,
  faultWith,
  lasting,
  request,
  startService,
} from './chat-world.ts';

describe('an answer of no use', () => {
  it.each(['', '{"choices":[', 'data: {}\n\n', '\u0000'])('is no JSON: %j', async (body) => {
    expect((await faultWith({ body })).kind).toBe('not_json');
  });

  it.each<unknown>([
    [],
    {},
    { choices: null },
    { choices: ['odd'] },
    { choices: [null] },
    { choices: [{ text: 'old form' }] },
    completionOf(['parts']),
    '"text"',
    '5',
    'null',
  ])('is of another form: %j', async (body) => {
    expect((await faultWith({ body })).kind).toBe('unexpected_form');
  });

  it.each([null, undefined, '', ' \n\t '])('is empty with the content %j', async (content) => {
    const { kind, tokens } = await faultWith({
      body: completionOf(content, { usage: { total_tokens: 9 } }),
    });
    expect([kind, tokens]).toEqual(['empty', 9]);
  });

  it('is empty without a choice, and cut when all was spent on thinking or a filter came between', async () => {
    expect((await faultWith({ body: { choices: [] } })).kind).toBe('empty');
    const thought = completionOf(null, { usage: { total_tokens: 4_096 } }, 'length');
    expect(await faultWith({ body: thought })).toMatchObject({ kind: 'cut', tokens: 4_096 });
    const filtered = await faultWith({ body: completionOf('It', {}, 'content_filter') });
    expect([filtered.kind, filtered.message]).toEqual([
      'cut',
      expect.stringContaining('its filter'),
    ]);
  });

  it('is one beyond all bounds', async () => {
    for (const status of [200, 500]) {
      const huge = await faultWith({ status, body: 'x'.repeat(answerBytesMax + 1) });
      expect([huge.kind, huge.message]).toEqual([
        'unexpected_form',
        'The inference service (HOST) gave an answer that cannot be used: its answer is larger than 1048576 bytes. Check EARSHOT_INFERENCE_URL.',
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
      const fault = await faultOf(clientOf(url, { timeoutMs: 200 }).complete(request, lasting()));
      expect([fault.kind, fault.message]).toEqual([
        'timeout',
        `The inference service (${host}) did not give its whole answer within 0.2 s. Try again later; if that continues, choose a faster model.`,
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
  ])('for a connection that breaks %s it: that is unreachable', async (_how, answer) => {
    const { kind, message } = await faultWith(answer);
    expect(kind).toBe('unreachable');
    expect(message).toMatch(
      /cannot be asked: the connection broke \(\w+\)\. Try again later, or check EARSHOT_INFERENCE_URL\.$/,
    );
  });

  it('where nobody listens: that is unreachable too', async () => {
    const host = `127.0.0.1:${await freePort()}`;
    const fault = await faultOf(clientOf(`http://${host}`).complete(request, lasting()));
    expect([fault.kind, fault.message]).toEqual([
      'unreachable',
      `The inference service (${host}) cannot be asked: the connection was refused (ECONNREFUSED). Try again later, or check EARSHOT_INFERENCE_URL.`,
    ]);
  });
});
