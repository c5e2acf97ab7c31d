import { describe, expect, it } from 'vitest';
import { answerBytesMax, retryAfterMs } from '../../../src/core/http/bounded-fetch.ts';
import {
  createOutboundClient,
  type OutboundRequest,
  type OutboundTiming,
} from '../../../src/core/http/outbound-client.ts';
import { AppError, errorText } from '../../../src/core/terms/app-error.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { wholeTextOf } from '../config/environment.ts';
import { type Answer, startServer } from './answering-server.ts';

const secret = 'a-token-nobody-may-see';

function clientWith(timing: Partial<OutboundTiming> = {}) {
  const quick = { retryDelayMs: 1, ...timing };
  return createOutboundClient({
    service: 'the catalogue',
    variable: 'EARSHOT_CATALOGUE_URL',
    fetch,
    random: () => 0.5,
    timing: quick,
  });
}

function requestTo(url: string, method: OutboundRequest['method'] = 'GET'): OutboundRequest {
  const headers = { Authorization: `Bearer ${secret}` };
  return { method, url, headers, purpose: 'list subscriptions' };
}

/** Requests a server with these responses; returns the result and the number of requests. */
async function outcomeOf(
  answers: Answer[],
  method: OutboundRequest['method'] = 'GET',
  timing: Partial<OutboundTiming> = {},
) {
  const server = await startServer(answers);
  const client = clientWith(timing);
  const outcome = await client(requestTo(`${server.url}/x`, method)).catch((error) => error);
  return { outcome, tries: server.requests.length, requests: server.requests };
}

/** Returns the error of a request; fails when there is none, or when it contains the token. */
async function failureOf(url: string, timing: Partial<OutboundTiming> = {}): Promise<AppError> {
  const error = await clientWith(timing)(requestTo(url)).catch((error) => error);
  expect(error).toBeInstanceOf(AppError);
  expect(wholeTextOf(error)).not.toContain(secret);
  return error;
}

describe('a response', () => {
  it('is returned with status, headers, text and JSON, for any status', async () => {
    const headers = { 'request-id': 'r-1' };
    for (const status of [200, 201, 204, 302, 400, 401, 404, 422]) {
      const body = status === 204 ? undefined : { detail: 'ä' };
      const { outcome, tries } = await outcomeOf([{ status, headers, body }]);
      expect(outcome.status).toBe(status);
      expect(outcome.headers.get('request-id')).toBe('r-1');
      expect([outcome.text, outcome.json]).toEqual(
        body === undefined ? ['', undefined] : ['{"detail":"ä"}', body],
      );
      expect(tries).toBe(1);
    }
  });

  it('may be as large as the limit, and no larger', async () => {
    const largest = await outcomeOf([{ body: 'x'.repeat(answerBytesMax) }]);
    expect(largest.outcome.text).toHaveLength(answerBytesMax);
    for (const status of [200, 400]) {
      const { outcome } = await outcomeOf([{ status, body: 'x'.repeat(answerBytesMax + 1) }]);
      expect(outcome.code).toBe('unavailable');
      expect(errorText(outcome)).toContain('larger than 1048576 bytes');
    }
  });

  it('with a redirect is not followed', async () => {
    const elsewhere = await startServer([{ body: [] }]);
    const { outcome } = await outcomeOf([{ status: 302, headers: { location: elsewhere.url } }]);
    expect(outcome.status).toBe(302);
    expect(elsewhere.requests).toEqual([]);
  });
});

describe('a request', () => {
  it('has its body as JSON with its length, and names the program', async () => {
    const server = await startServer([{}]);
    const headers = { 'Content-Type': 'application/json' };
    const request = { method: 'POST', url: server.url, headers, body: { a: 'ü' } } as const;
    await clientWith()({ ...request, purpose: 'try' });
    const [seen] = server.requests;
    expect(seen?.body).toBe('{"a":"ü"}');
    expect(seen?.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': '10',
      'user-agent': 'earshot',
    });
  });

  it.each(['GET', 'PATCH', 'DELETE'] as const)(
    '%s is repeated until it succeeds',
    async (method) => {
      for (const bad of [408, 429, 500, 502, 503, 504, 520]) {
        const { outcome, tries } = await outcomeOf(
          [{ status: bad }, 'cut', { status: 200 }],
          method,
        );
        expect(outcome.status).toBe(200);
        expect(tries).toBe(3);
      }
    },
  );

  it.each<Answer>([{ status: 503 }, { status: 429 }, 'cut'])(
    'POST is never repeated (%j)',
    async (answer) => {
      expect((await outcomeOf([answer, { status: 201 }], 'POST')).tries).toBe(1);
    },
  );

  it('is repeated when a response is missing or incomplete', async () => {
    const stopsHalfway: Answer = (response) => {
      response.writeHead(200, { 'Content-Length': '100' });
      response.write('half');
    };
    const timing = { attemptTimeoutMs: 400 };
    const { outcome, tries } = await outcomeOf(
      ['hang', stopsHalfway, { body: 'x' }],
      'GET',
      timing,
    );
    expect([outcome.text, tries]).toEqual(['x', 3]);
  });

  it('ends at its deadline', async () => {
    const timing = { attemptTimeoutMs: 100, totalTimeoutMs: 250 };
    const { outcome, tries } = await outcomeOf(['hang'], 'GET', timing);
    expect(errorText(outcome)).toContain('it did not answer in time');
    expect(tries).toBeLessThan(4);
  });
});

describe('the delay between attempts', () => {
  it('follows Retry-After', async () => {
    const busy = { status: 429, headers: { 'Retry-After': '1' } };
    const startMs = performance.now();
    const { tries } = await outcomeOf([busy, { status: 200 }]);
    expect(tries).toBe(2);
    expect(performance.now() - startMs).toBeGreaterThan(950);
  });

  it('ends the request when the service asks for more than a minute', async () => {
    const headers = { 'Retry-After': '61' };
    const { outcome, tries } = await outcomeOf([{ status: 503, headers }]);
    expect([outcome.status, tries]).toEqual([503, 1]);
  });

  it.each([
    ['7', 7_000],
    ['0', 0],
    ['Fri, 01 May 2026 12:01:30 GMT', 90_000],
    ['Fri, 01 May 2026 11:00:00 GMT', 0],
    ['soon', null],
    ['-5', null],
  ])('is read from Retry-After: %s', (text, ms) => {
    const headers = { 'retry-after': text, date: 'Fri, 01 May 2026 12:00:00 GMT' };
    expect(retryAfterMs(new Headers(headers))).toBe(ms);
  });
});

describe('an unreachable service', () => {
  it('is named with the purpose when nobody listens', async () => {
    const host = `127.0.0.1:${await freePort()}`;
    const error = await failureOf(`http://${host}/x`);
    expect(error.code).toBe('unavailable');
    expect(errorText(error)).toBe(
      `Could not list subscriptions: the catalogue (${host}) cannot be reached: the connection was refused (ECONNREFUSED). Retry later. If this happens again, check EARSHOT_CATALOGUE_URL.`,
    );
  });

  it('is reported without the header when a header is invalid', async () => {
    const { url } = await startServer([{}]);
    const headers = { Authorization: `Bearer ${secret}\nX: 1` };
    const request = { method: 'GET', url, headers, purpose: 'try' } as const;
    const error = await clientWith()(request).catch((error) => error);
    expect(error).toBeInstanceOf(AppError);
    expect(wholeTextOf(error)).not.toContain(secret);
  });
});
