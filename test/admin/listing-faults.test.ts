/**
 * The listing against a catalogue that is slow, broken or overloaded, refuses requests, or requires
 * a login; and its request rate.
 */
import { describe, expect, it } from 'vitest';
import type { AccessTokens } from '../../src/admin/account.ts';
import type { ListingRetry } from '../../src/admin/listing-requests.ts';
import { errorText } from '../../src/core/terms/app-error.ts';
import { wholeTextOf } from '../core/config/environment.ts';
import type { Answer } from '../core/http/answering-server.ts';
import { listingOf, numbersIn, publishedAt, startCatalogue, walked } from './listing-set-up.ts';

const records = publishedAt(0, 1_000, 2_000);
const [first, second] = records;

/** Starts a catalogue of three products that gives these answers first. */
function answersFirst(...answers: Answer[]) {
  return startCatalogue({ records: () => records, answer: (request) => answers[request] });
}

function always(answer: Answer) {
  return startCatalogue({ records: () => records, answer: () => answer });
}

const broken: [string, Answer][] = [
  ['an error', { status: 500 }],
  ['an overload without a time', { status: 503 }],
  ['too many requests without a time', { status: 429 }],
  ['a page of a proxy', { body: '<html><title>Sorry</title>' }],
  ['half a page', { body: '{"value":[{"Id":"' }],
  ['a connection that breaks', 'cut'],
  [
    'a page that is cut',
    (response) => {
      response.writeHead(200, { 'Content-Length': '1000' });
      response.write('{"value":[', () => response.destroy());
    },
  ],
  ['no list', { body: { detail: 'none' } }],
  ['a list of something else', { body: { value: {} } }],
  ['a list in the wrong order', { body: { value: [second, first] } }],
  ['a list from before', { body: { value: publishedAt(-1_000) } }],
  [
    'ten records, mostly without id or date',
    { body: { value: [...records, first, ...Array.from({ length: 6 }, () => ({}))] } },
  ],
  ['no answer', 'hang'],
  ['another kind of success', { status: 204 }],
];

describe('a failed page is retried', () => {
  it.each(broken)('after %s', async (_, answer) => {
    const catalogue = await answersFirst(answer);
    // Only hanging requests may time out, even on a busy machine.
    const timing = answer === 'hang' ? { attemptTimeoutMs: 500 } : {};
    const walk = listingOf(catalogue.url, { timing });
    expect(numbersIn(await walked(walk))).toEqual([0, 1, 2]);
    if (answer !== 'hang') expect(catalogue.requests).toHaveLength(2);
  });

  it('but not for a few records without id or date, which are counted', async () => {
    const odd = (count: number) => Array.from({ length: count }, () => ({ Name: 'x' }));
    for (const value of [odd(1), odd(9), [...odd(5), ...publishedAt(0, 1, 2, 3, 4)]]) {
      const catalogue = await always({ body: { value } });
      const { listing } = listingOf(catalogue.url);
      const pages = await walked({ listing });
      expect(numbersIn(pages)).toHaveLength(value.length > 9 ? 5 : 0);
      expect(listing.spent()).toMatchObject({
        requests: 1,
        unreadableRecords: Math.min(value.length, value.length > 9 ? 5 : 9),
      });
    }
  });

  it('with growing delays up to eight attempts, then fails with the last error', async () => {
    const catalogue = await always({ body: '<html><title>Under repair</title>' });
    const walk = listingOf(catalogue.url, { requestsPerMinute: 60_000 });
    const error = await walked(walk).catch((error) => error);
    expect(error).toMatchObject({ code: 'unavailable' });
    expect(errorText(error)).toContain('not valid JSON');
    expect(errorText(error)).toContain('Under repair');
    expect(errorText(error)).toMatch(
      /is unusable: .*\. 8 attempts in a row failed\. Retry later\. If this happens again, check EARSHOT_CATALOGUE_URL\. Response: /,
    );
    const waits = walk.startsMs.slice(1).map((ms, index) => ms - (walk.startsMs[index] ?? 0));
    expect(waits).toEqual([750, 1_500, 3_000, 6_000, 12_000, 24_000, 45_000]);
  });

  it('with a new count after each success: only consecutive failures count', async () => {
    let failures = 0;
    const catalogue = await startCatalogue({
      records: () => publishedAt(...Array.from({ length: 30 }, (_, number) => number * 1_000)),
      answer: () => (++failures % 5 === 0 ? undefined : { status: 500 }),
    });
    expect(numbersIn(await walked(listingOf(catalogue.url, { sizes: [10] })))).toHaveLength(30);
  });

  it('in the same size after too many requests, then fails with its own code', async () => {
    const catalogue = await always({ status: 429 });
    await expect(walked(listingOf(catalogue.url))).rejects.toMatchObject({ code: 'too_many' });
    const tops = catalogue.requests.map(({ url }) => url.searchParams.get('$top'));
    expect(tops).toEqual(Array.from({ length: 8 }, () => '1000'));
  });

  it.each([404, 405, 302])('but never after %i', async (status) => {
    const catalogue = await always({ status, body: { detail: 'Invalid odata path' } });
    const code = status === 302 ? 'unavailable' : 'invalid';
    await expect(walked(listingOf(catalogue.url))).rejects.toMatchObject({
      code,
      text: expect.stringContaining('EARSHOT_CATALOGUE_URL'),
    });
    expect(catalogue.requests).toHaveLength(1);
  });
});

describe('pages', () => {
  it('become smaller after two consecutive failures, and larger again later', async () => {
    const tops: number[] = [];
    const catalogue = await startCatalogue({
      records: () => publishedAt(...Array.from({ length: 60 }, (_, number) => number * 1_000)),
      answer: (_, url) => {
        const top = Number(url.searchParams.get('$top'));
        tops.push(top);
        return tops.length < 5 && top > 5 ? { status: 504 } : undefined;
      },
    });
    const walk = listingOf(catalogue.url, { sizes: [40, 10, 5] });
    expect(numbersIn(await walked(walk))).toHaveLength(60);
    expect(tops.slice(0, 11)).toEqual([40, 40, 10, 10, 5, 5, 5, 5, 5, 10, 10]);
    // The count may be the slow part.
    const counted = catalogue.requests.map(({ url }) => url.searchParams.has('$count'));
    expect(counted.slice(0, 5)).toEqual([true, true, false, false, false]);
  });
});

describe('requests', () => {
  it('respect the rate limit and run one at a time, whatever their result', async () => {
    const catalogue = await startCatalogue({
      records: () => publishedAt(...Array.from({ length: 30 }, (_, number) => number * 1_000)),
      answer: (request) => (request % 3 === 1 ? { status: 500 } : undefined),
    });
    let nowMs = 0;
    const startsMs: number[] = [];
    const pending = { now: 0, most: 0 };
    const { listing } = listingOf(catalogue.url, {
      requestsPerMinute: 12,
      sizes: [10],
      nowMs: () => nowMs,
      pause: async (ms) => {
        nowMs += ms;
      },
      fetch: async (input, init) => {
        startsMs.push(nowMs);
        pending.most = Math.max(pending.most, ++pending.now);
        nowMs += 1_000;
        return fetch(input, init).finally(() => {
          pending.now -= 1;
        });
      },
    });
    expect(numbersIn(await walked({ listing }))).toHaveLength(30);
    const requests = startsMs.length;
    const spent = { requests, answersMs: requests * 1_000, waitedMs: nowMs - requests * 1_000 };
    expect(listing.spent()).toMatchObject(spent);

    const both = await Promise.all([walked({ listing }), walked({ listing })]);
    expect(both.map((pages) => numbersIn(pages).length)).toEqual([30, 30]);
    const gaps = startsMs.slice(1).map((ms, index) => ms - (startsMs[index] ?? 0));
    expect(gaps.length).toBeGreaterThan(15);
    expect(Math.min(...gaps)).toBe(5_000);
    expect(pending.most).toBe(1);
  });

  it.each([429, 503])('wait as long as the catalogue requests (%i)', async (status) => {
    const busy = { status, headers: { 'Retry-After': '90' } };
    const catalogue = await answersFirst(busy, busy);
    const walk = listingOf(catalogue.url);
    expect(numbersIn(await walked(walk))).toEqual([0, 1, 2]);
    expect(walk.startsMs).toEqual([0, 90_500, 181_000]);
  });

  it('are not retried when a wait or the sum of waits is too long', async () => {
    const long = await always({ status: 429, headers: { 'Retry-After': '601' } });
    await expect(walked(listingOf(long.url))).rejects.toMatchObject({
      code: 'too_many',
      text: expect.stringContaining('in 601 seconds'),
    });
    expect(long.requests).toHaveLength(1);
    const often = await always({ status: 503, headers: { 'Retry-After': '590' } });
    await expect(walked(listingOf(often.url))).rejects.toMatchObject({ code: 'unavailable' });
    expect(often.requests).toHaveLength(4);
  });

  it('with a wait of 0 are retried at the usual rate, and not forever', async () => {
    const catalogue = await always({ status: 429, headers: { 'Retry-After': '0' } });
    const walk = listingOf(catalogue.url, { timing: { retryAfterTotalMsMax: 60_000 } });
    await expect(walked(walk)).rejects.toMatchObject({ code: 'too_many' });
    expect(walk.startsMs.at(-1)).toBeLessThanOrEqual(60_000);
    expect(catalogue.requests.length).toBeLessThan(60);
  });

  it('end at once when the signal is aborted before, between or during them', async () => {
    const catalogue = await always('hang');
    const reason = new Error('stop');
    const before = walked(listingOf(catalogue.url), {}, AbortSignal.abort(reason));
    await expect(before).rejects.toBe(reason);
    expect(catalogue.requests).toEqual([]);

    const within = new AbortController();
    const walk = walked(listingOf(catalogue.url), {}, within.signal);
    await expect.poll(() => catalogue.requests.length).toBe(1);
    within.abort(reason);
    await expect(walk).rejects.toBe(reason);

    const between = new AbortController();
    const failing = await always({ status: 500 });
    const pause = async () => between.abort(reason);
    await expect(walked(listingOf(failing.url, { pause }), {}, between.signal)).rejects.toBe(
      reason,
    );
    expect(failing.requests).toHaveLength(1);
  });
});

describe('a login', () => {
  function tokensOf(...names: string[]) {
    const refused: string[] = [];
    const tokens: AccessTokens = {
      get: async () => names[refused.length] ?? 'none',
      refused: async (token) => {
        refused.push(token);
      },
    };
    return { tokens, refused };
  }

  const requiresLogin = (validToken: string) =>
    startCatalogue({
      records: () => records,
      answer: (_, _url, authorization) =>
        authorization === `Bearer ${validToken}`
          ? undefined
          : { status: 401, body: { detail: 'Unauthorized' } },
    });

  it('is used only when required, and then kept', async () => {
    const open = await answersFirst();
    await walked(listingOf(open.url, tokensOf('good')));
    expect(open.requests[0]?.authorization).toBeUndefined();

    const closed = await requiresLogin('good');
    const walk = listingOf(closed.url, { tokens: tokensOf('good').tokens, sizes: [2] });
    expect(numbersIn(await walked(walk))).toEqual([0, 1, 2]);
    const sent = closed.requests.map(({ authorization }) => authorization);
    expect(sent).toEqual([undefined, ...sent.slice(1).map(() => 'Bearer good')]);
    expect(sent.length).toBeGreaterThan(2);
  });

  it('that has expired is renewed once', async () => {
    const { tokens, refused } = tokensOf('old', 'good');
    expect(
      numbersIn(await walked(listingOf((await requiresLogin('good')).url, { tokens }))),
    ).toHaveLength(3);
    expect(refused).toEqual(['old']);

    const other = await requiresLogin('another');
    const error = await walked(listingOf(other.url, { tokens: tokensOf('a', 'b').tokens })).catch(
      (e) => e,
    );
    expect(error).toMatchObject({ code: 'unauthorized' });
    expect(other.requests).toHaveLength(3);
    expect(wholeTextOf(error)).not.toContain('Bearer');
  });

  it('that is not configured is an error that names the variables', async () => {
    const catalogue = await requiresLogin('good');
    await expect(walked(listingOf(catalogue.url))).rejects.toMatchObject({
      code: 'unauthorized',
      text: expect.stringMatching(/\(401\).*EARSHOT_ACCOUNT_USERNAME.*EARSHOT_ACCESS_TOKEN/),
    });
  });
});

describe('a retry is reported', () => {
  async function retriesOf(answer: Answer) {
    const catalogue = await startCatalogue({
      records: () => [],
      answer: (request) => (request === 0 ? answer : undefined),
    });
    const retries: ListingRetry[] = [];
    const onRetry = (retry: ListingRetry) => void retries.push(retry);
    const timing = answer === 'hang' ? { attemptTimeoutMs: 500 } : {};
    await walked(listingOf(catalogue.url, { onRetry, timing }));
    return retries;
  }

  it.each<[string, Answer]>([
    ['The catalogue responds with an error (500)', { status: 500 }],
    ["The catalogue's response is unusable", { body: { detail: 'none' } }],
    ['The catalogue cannot be reached: it did not answer in time', 'hang'],
  ])('with the cause: %s', async (cause, answer) => {
    const [first, ...others] = await retriesOf(answer);
    expect(first).toEqual({ cause, waitMs: 750, remainingWaitMs: 123_000 });
    expect(new Set(others.map((retry) => retry.cause))).toEqual(
      new Set(others.length > 0 ? [cause] : []),
    );
  });

  it('with the wait that the catalogue requests', async () => {
    expect(await retriesOf({ status: 429, headers: { 'Retry-After': '90' } })).toEqual([
      { cause: 'The catalogue requests a delay (429)', waitMs: 90_500, remainingWaitMs: null },
    ]);
  });

  it('before each attempt, and the final error has the advice', async () => {
    const causes: string[] = [];
    const remainingWaitMs: (number | null)[] = [];
    const refusing: typeof fetch = async () => {
      throw new TypeError('fetch failed', {
        cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }),
      });
    };
    const walk = listingOf('http://catalogue.test', {
      fetch: refusing,
      onRetry: (retry) => {
        causes.push(retry.cause);
        remainingWaitMs.push(retry.remainingWaitMs);
      },
    });
    await expect(walked(walk)).rejects.toMatchObject({
      text: 'Could not list the created products: the catalogue (catalogue.test) cannot be reached: the connection was refused (ECONNREFUSED). 8 attempts in a row failed. Retry later. If this happens again, check EARSHOT_CATALOGUE_URL.',
    });
    expect(causes).toEqual(
      Array.from({ length: 7 }, () => 'The catalogue does not respond (ECONNREFUSED)'),
    );
    // Decreasing; at last only the longest delay.
    const leftMs = [123_000, 122_000, 120_000, 116_000, 108_000, 92_000, 60_000];
    expect(remainingWaitMs).toEqual(leftMs);
  });
});

const page = '<html><title>403 Forbidden</title></html>';
const firewall: Answer = { status: 403, body: page };
const forbidden: Answer = { status: 403, body: { detail: 'Not for you' } };

const isAsked = (url: URL, word: string) =>
  url.searchParams.get('$filter')?.includes(word) ?? false;

/** Starts a catalogue of three products at consecutive milliseconds. */
const refusing = (answer: (url: URL, authorization?: string) => Answer | undefined) =>
  startCatalogue({
    records: () => publishedAt(0, 1_000, 2_000),
    answer: (_, url, authorization) => answer(url, authorization),
  });

/** An account that counts its tokens. */
function account() {
  const used = { tokens: 0, refused: 0 };
  const tokens: AccessTokens = {
    get: async () => `token-${++used.tokens}`,
    refused: async () => {
      used.refused += 1;
    },
  };
  return { tokens, used };
}

/** A polygon with many corners around everything, so long that a firewall blocks it. */
const corners = Array.from({ length: 160 }, (_, n) => `${-170 + n * 2.125} 80`);
const ring = [...corners, '170 -80', '-170 -80', corners[0]].join(',');
const longFilter = `OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${ring}))')`;
const secondOrWide = `Name eq 'S2A_1.SAFE' or ${longFilter}`;

it.each([
  ['a page', firewall],
  ['JSON in a form that is not the catalogue’s', { status: 403, body: { message: 'Forbidden' } }],
  ['nothing', { status: 403 }],
] satisfies [string, Answer][])(
  'lists without the filter, and without a login, when a firewall answers with %s',
  async (_, answer) => {
    const catalogue = await refusing((url) => (isAsked(url, 'Intersects') ? answer : undefined));
    const { tokens, used } = account();
    const walk = listingOf(catalogue.url, { tokens, sizes: [2] });
    const pages = await walked(walk, { filter: `(${secondOrWide}) and Name ne 'S2A_2.SAFE'` });
    // The other records have no known footprint.
    expect(numbersIn(pages)).toEqual([1]);
    expect(used).toEqual({ tokens: 0, refused: 0 });
    expect(catalogue.requests.filter(({ url }) => isAsked(url, 'Intersects'))).toHaveLength(1);
  },
);

it('reports the length of the URL when the filter cannot be evaluated locally', async () => {
  const catalogue = await refusing(() => firewall);
  const filter = `what is this '${'x'.repeat(2_000)}'`;
  const error = await walked(listingOf(catalogue.url), { filter }).catch((e) => e);
  expect(errorText(error)).toMatch(
    /^Could not list the created products: the response \(403\) comes from a firewall or proxy, .* the URL has 2,\d\d\d characters, .* Shorten the filter .*\. Response: \(a web page\) 403 Forbidden$/,
  );
  expect(error).toMatchObject({ code: 'invalid' });
  expect(errorText(error)).not.toContain('EARSHOT_ACCOUNT');
  expect(catalogue.requests).toHaveLength(1);
});

it('reports that this host may be blocked when a short URL is refused, with or without an account', async () => {
  const catalogue = await refusing(() => firewall);
  const { tokens, used } = account();
  // Listing without such a short filter would be a much larger query.
  for (const [own, filter] of [
    [{}, ''],
    [{ tokens }, "Name eq 'S2A_1.SAFE'"],
  ] as const) {
    const error = await walked(listingOf(catalogue.url, own), { filter }).catch((e) => e);
    expect(error).toMatchObject({
      code: 'unavailable',
      text: expect.stringMatching(/block this host .*Retry later.*EARSHOT_CATALOGUE_URL/),
    });
    expect(errorText(error)).not.toMatch(/EARSHOT_ACCOUNT|characters/);
  }
  expect(used).toEqual({ tokens: 0, refused: 0 });
  expect(catalogue.requests).toHaveLength(2);
});

it('logs in when the catalogue itself refuses anonymous requests', async () => {
  const catalogue = await refusing((_, authorization) =>
    authorization === undefined ? forbidden : undefined,
  );
  const { tokens, used } = account();
  expect(numbersIn(await walked(listingOf(catalogue.url, { tokens })))).toEqual([0, 1, 2]);
  expect(used).toEqual({ tokens: 1, refused: 0 });
  await expect(walked(listingOf(catalogue.url))).rejects.toMatchObject({
    code: 'unauthorized',
    text: 'The catalogue refused to list the created products (403); a login may be required. Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD, or EARSHOT_ACCESS_TOKEN. Response: Not for you',
  });
});

it('logs in once when the account lacks the permission, and reports it', async () => {
  const catalogue = await refusing(() => forbidden);
  const { tokens, used } = account();
  const walk = walked(listingOf(catalogue.url, { tokens }), { filter: "Name ne 'x'" });
  await expect(walk).rejects.toMatchObject({
    code: 'unauthorized',
    text: expect.stringMatching(
      /the account lacks the permission\. Log in on .*Response: Not for you$/,
    ),
  });
  expect(used).toEqual({ tokens: 1, refused: 0 });
  expect(catalogue.requests).toHaveLength(2);
});
