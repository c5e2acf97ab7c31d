/** What the listing tells of a catalogue that fails, while it tries again, and when it gives up. */
import { describe, expect, it } from 'vitest';
import type { ListingTrouble } from '../../../src/admin/reconcile/page-requests.ts';
import type { Answer } from '../../http/answering-server.ts';
import { listingOf, startCatalogue, walked } from './listing-world.ts';

describe('trouble is told', () => {
  async function troublesOf(answer: Answer) {
    const catalogue = await startCatalogue({
      records: () => [],
      answer: (request) => (request === 0 ? answer : undefined),
    });
    const troubles: ListingTrouble[] = [];
    const onTrouble = (trouble: ListingTrouble) => void troubles.push(trouble);
    const timing = answer === 'hang' ? { attemptTimeoutMs: 500 } : {};
    await walked(listingOf(catalogue.url, { onTrouble, timing }));
    return troubles;
  }

  it.each<[string, Answer]>([
    ['The catalogue does not answer as it should (500)', { status: 500 }],
    ["The catalogue's answer cannot be used", { body: { detail: 'none' } }],
    ['The catalogue cannot be asked: it did not answer in time', 'hang'],
  ])('as: %s', async (cause, answer) => {
    const [first, ...others] = await troublesOf(answer);
    expect(first).toEqual({ cause, waitMs: 750, triesForMs: 123_000 });
    expect(new Set(others.map((trouble) => trouble.cause))).toEqual(
      new Set(others.length > 0 ? [cause] : []),
    );
  });

  it('as a wait that the catalogue asks for', async () => {
    expect(await troublesOf({ status: 429, headers: { 'Retry-After': '90' } })).toEqual([
      { cause: 'The catalogue asks us to wait (429)', waitMs: 90_500, triesForMs: null },
    ]);
  });

  it('before each further try, and with the advice last when it is given up', async () => {
    const causes: string[] = [];
    const triesForMs: (number | null)[] = [];
    const refusing: typeof fetch = async () => {
      throw new TypeError('fetch failed', {
        cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }),
      });
    };
    const walk = listingOf('http://catalogue.test', {
      fetch: refusing,
      onTrouble: (trouble) => {
        causes.push(trouble.cause);
        triesForMs.push(trouble.triesForMs);
      },
    });
    await expect(walked(walk)).rejects.toMatchObject({
      text: 'Could not list the created products: the catalogue (catalogue.test) cannot be asked: the connection was refused (ECONNREFUSED). That was the last of 8 tries in a row. Try again later, or check EARSHOT_CATALOGUE_URL.',
    });
    expect(causes).toEqual(
      Array.from({ length: 7 }, () => 'The catalogue does not answer (ECONNREFUSED)'),
    );
    // Less and less, and at last the longest wait alone.
    const leftMs = [123_000, 122_000, 120_000, 116_000, 108_000, 92_000, 60_000];
    expect(triesForMs).toEqual(leftMs);
  });
});
