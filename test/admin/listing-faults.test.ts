/**
 * The listing against a catalogue that is slow, broken or overloaded, refuses requests, or requires
 * a login; and its request rate.
 */
import { describe, expect, it } from 'vitest';
import type { ListingRetry } from '../../src/admin/listing-requests.ts';
import { errorText } from '../../src/core/terms/app-error.ts';
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
  ['too many requests without a time', { status: 429 }],
  ['a page of a proxy', { body: '<html><title>Sorry</title>' }],
  [
    'a page that is cut',
    (response) => {
      response.writeHead(200, { 'Content-Length': '1000' });
      response.write('{"value":[', () => response.destroy());
    },
  ],
  ['no list', { body: { detail: 'none' } }],
  ['a list in the wrong order', { body: { value: [second, first] } }],
  ['a list from before', { body: { value: publishedAt(-1_000) } }],
  [
    'ten records, mostly without id or date',
    { body: { value: [...records, first, ...Array.from({ length: 6 }, () => ({}))] } },
  ],
  ['no answer', 'hang'],
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
    const good = publishedAt(0, 1, 2, 3, 4);
    for (const [unreadableRecords, readable] of [
      [1, []],
      [9, []],
      [5, good],
    ] as const) {
      const value = [...odd(unreadableRecords), ...readable];
      const { listing } = listingOf((await always({ body: { value } })).url);
      expect(numbersIn(await walked({ listing }))).toHaveLength(readable.length);
      expect(listing.spent()).toMatchObject({ requests: 1, unreadableRecords });
    }
  });

  it('with growing delays up to eight attempts, then fails with the last error', async () => {
    const catalogue = await always({ body: '<html><title>Under repair</title>' });
    const retries: ListingRetry[] = [];
    const onRetry = (retry: ListingRetry) => void retries.push(retry);
    const walk = listingOf(catalogue.url, { requestsPerMinute: 60_000, onRetry });
    const error = await walked(walk).catch((error) => error);
    expect(error).toMatchObject({ code: 'unavailable' });
    expect(errorText(error)).toMatch(
      /not valid JSON.* 8 attempts in a row failed\. .*EARSHOT_CATALOGUE_URL.*Under repair/,
    );
    const waits = walk.startsMs.slice(1).map((ms, index) => ms - (walk.startsMs[index] ?? 0));
    expect(waits).toEqual([750, 1_500, 3_000, 6_000, 12_000, 24_000, 45_000]);
    expect(retries.map(({ waitMs }) => waitMs)).toEqual(waits);
    expect(new Set(retries.map(({ cause }) => cause)).size).toBe(1);
  });

  it('with a new count after each success: only consecutive failures count', async () => {
    let failures = 0;
    const catalogue = await startCatalogue({
      records: () => publishedAt(...Array.from({ length: 30 }, (_, number) => number * 1_000)),
      answer: () => (++failures % 5 === 0 ? undefined : { status: 500 }),
    });
    expect(numbersIn(await walked(listingOf(catalogue.url, { sizes: [10] })))).toHaveLength(30);
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

it('pages become smaller after two consecutive failures, and larger again later', async () => {
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

describe('requests', () => {
  it('respect the rate limit and run one at a time, whatever their result', async () => {
    const catalogue = await startCatalogue({
      records: () => publishedAt(...Array.from({ length: 30 }, (_, number) => number * 1_000)),
      answer: (request) => (request % 3 === 1 ? { status: 500 } : undefined),
    });
    const walk = listingOf(catalogue.url, { requestsPerMinute: 12, sizes: [10] });
    const both = await Promise.all([walked(walk), walked(walk)]);
    expect(both.map((pages) => numbersIn(pages).length)).toEqual([30, 30]);
    const gaps = walk.startsMs.slice(1).map((ms, index) => ms - (walk.startsMs[index] ?? 0));
    expect(gaps.length).toBeGreaterThan(8);
    expect(Math.min(...gaps)).toBe(5_000);
    expect(walk.listing.spent().requests).toBe(walk.startsMs.length);
  });

  it.each([429, 503])('wait as long as the catalogue requests (%i)', async (status) => {
    const busy = { status, headers: { 'Retry-After': '90' } };
    const catalogue = await answersFirst(busy, busy);
    const retries: ListingRetry[] = [];
    const walk = listingOf(catalogue.url, { onRetry: (retry) => void retries.push(retry) });
    expect(numbersIn(await walked(walk))).toEqual([0, 1, 2]);
    expect(walk.startsMs).toEqual([0, 90_500, 181_000]);
    expect(walk.listing.spent()).toMatchObject({ requests: 3 });
    expect(retries[0]).toMatchObject({ waitMs: 90_500 });
  });

  it('are not retried when the requested wait is too long', async () => {
    const long = await always({ status: 429, headers: { 'Retry-After': '601' } });
    await expect(walked(listingOf(long.url))).rejects.toMatchObject({
      code: 'too_many',
      text: expect.stringContaining('in 601 seconds'),
    });
    expect(long.requests).toHaveLength(1);
  });

  it('end at once when the signal is aborted between or during them', async () => {
    const reason = new Error('stop');
    const stop = new AbortController();
    const stopping = { pause: async () => stop.abort(reason) };
    const failing = await always({ status: 500 });
    await expect(walked(listingOf(failing.url, stopping), {}, stop.signal)).rejects.toBe(reason);
    expect(failing.requests).toHaveLength(1);
    const hanging = await always('hang');
    const within = new AbortController();
    const walk = walked(listingOf(hanging.url), {}, within.signal);
    await expect.poll(() => hanging.requests.length).toBe(1);
    within.abort(reason);
    await expect(walk).rejects.toBe(reason);
  });
});

const unauthorized: Answer = { status: 401, body: { detail: 'Unauthorized' } };
const forbidden: Answer = { status: 403, body: { detail: 'Not for you' } };
const firewall: Answer = { status: 403, body: '<html><title>403 Forbidden</title></html>' };

const blocked = /firewall or proxy.*Retry later.*EARSHOT_CATALOGUE_URL/;
const long = `what is this '${'x'.repeat(2_000)}'`;
const tooLong = /from a firewall or proxy, and the URL is long.* Shorten the filter/;

// Listing without a short filter would be a much larger query.
it.each<[title: string, Answer, filter: string, string, RegExp]>([
  ['401', unauthorized, '', 'unauthorized', /requires a login.* answered 401.*: Unauthorized$/],
  ['403', forbidden, "Name ne 'x'", 'unauthorized', /or a permission.* 403.*: Not for you$/],
  ['a firewall, and a filter only for the catalogue', firewall, long, 'invalid', tooLong],
  ['a firewall, and a short filter', firewall, "Name ne 'x'", 'unavailable', blocked],
])('a refusal by %s is an error', async (_title, answer, filter, code, words) => {
  const catalogue = await always(answer);
  const error = await walked(listingOf(catalogue.url), { filter }).catch((e) => e);
  expect([error.code, errorText(error)]).toEqual([code, expect.stringMatching(words)]);
  expect(catalogue.requests).toHaveLength(1);
});

/** A polygon with many corners around everything, so long that a firewall blocks it. */
const corners = Array.from({ length: 160 }, (_, n) => `${-170 + n * 2.125} 80`);
const ring = [...corners, '170 -80', '-170 -80', corners[0]].join(',');
const wide = `OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${ring}))')`;

it.each([firewall, { status: 403, body: { message: 'Forbidden' } }])(
  'lists without the filter when a firewall answers with %j',
  async (answer) => {
    const isAsked = (url: URL) => url.searchParams.get('$filter')?.includes('Intersects') ?? false;
    const catalogue = await startCatalogue({
      records: () => records,
      answer: (_, url) => (isAsked(url) ? answer : undefined),
    });
    const walk = listingOf(catalogue.url, { sizes: [2] });
    const filter = `(Name eq 'S2A_1.SAFE' or ${wide}) and Name ne 'S2A_2.SAFE'`;
    // The other records have no known footprint.
    expect(numbersIn(await walked(walk, { filter }))).toEqual([1]);
    expect(catalogue.requests.filter(({ url }) => isAsked(url))).toHaveLength(1);
  },
);
