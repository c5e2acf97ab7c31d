/** The listing where somebody says no with 403: the catalogue, for want of a login or a right, or a firewall. */

import { expect, it } from 'vitest';
import type { AccessTokens } from '../../../src/admin/session/access-tokens.ts';
import { errorText } from '../../../src/domain/app-error.ts';
import type { Answer } from '../../http/answering-server.ts';
import { listingOf, numbersIn, publishedAt, startCatalogue, walked } from './listing-world.ts';

const page = '<html><title>403 Forbidden</title></html>';
const firewall: Answer = { status: 403, body: page };
const forbidden: Answer = { status: 403, body: { detail: 'Not for you' } };

const isAsked = (url: URL, word: string) =>
  url.searchParams.get('$filter')?.includes(word) ?? false;

/** Three products of consecutive milliseconds. */
const refusing = (answer: (url: URL, authorization?: string) => Answer | undefined) =>
  startCatalogue({
    records: () => publishedAt(0, 1_000, 2_000),
    answer: (_, url, authorization) => answer(url, authorization),
  });

/** An account whose tokens are counted. */
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

/** A polygon of many corners around everything, and so long that a firewall takes fright. */
const corners = Array.from({ length: 160 }, (_, n) => `${-170 + n * 2.125} 80`);
const ring = [...corners, '170 -80', '-170 -80', corners[0]].join(',');
const longFilter = `OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${ring}))')`;
const secondOrWide = `Name eq 'S2A_1.SAFE' or ${longFilter}`;

it.each([
  ['a page', firewall],
  ['JSON in a form that is not the catalogue’s', { status: 403, body: { message: 'Forbidden' } }],
  ['nothing', { status: 403 }],
] satisfies [string, Answer][])(
  'asks without the filter, and never logs in, where a firewall answers with %s',
  async (_, answer) => {
    const catalogue = await refusing((url) => (isAsked(url, 'Intersects') ? answer : undefined));
    const { tokens, used } = account();
    const walk = listingOf(catalogue.url, { tokens, sizes: [2] });
    const pages = await walked(walk, { filter: `(${secondOrWide}) and Name ne 'S2A_2.SAFE'` });
    // The others have no place that is known.
    expect(numbersIn(pages)).toEqual([1]);
    expect(used).toEqual({ tokens: 0, refused: 0 });
    expect(catalogue.requests.filter(({ url }) => isAsked(url, 'Intersects'))).toHaveLength(1);
  },
);

it('names the length of the address where the filter cannot be asked of the records here', async () => {
  const catalogue = await refusing(() => firewall);
  const filter = `what is this '${'x'.repeat(2_000)}'`;
  const error = await walked(listingOf(catalogue.url), { filter }).catch((e) => e);
  expect(errorText(error)).toMatch(
    /^Could not list the created products: the answer \(403\) is not .* the address has 2,\d\d\d characters, .* shorter filter, .*\. It says: \(a web page\) 403 Forbidden$/,
  );
  expect(error).toMatchObject({ code: 'invalid' });
  expect(errorText(error)).not.toContain('EARSHOT_ACCOUNT');
  expect(catalogue.requests).toHaveLength(1);
});

it('says that this host may be kept out where a short address is refused, with an account or without', async () => {
  const catalogue = await refusing(() => firewall);
  const { tokens, used } = account();
  // Without its short filter, the question would be a much larger one.
  for (const [own, filter] of [
    [{}, ''],
    [{ tokens }, "Name eq 'S2A_1.SAFE'"],
  ] as const) {
    const error = await walked(listingOf(catalogue.url, own), { filter }).catch((e) => e);
    expect(error).toMatchObject({
      code: 'unavailable',
      text: expect.stringMatching(/keep this host out .*Try again later.*EARSHOT_CATALOGUE_URL/),
    });
    expect(errorText(error)).not.toMatch(/EARSHOT_ACCOUNT|characters/);
  }
  expect(used).toEqual({ tokens: 0, refused: 0 });
  expect(catalogue.requests).toHaveLength(2);
});

it('logs in where the catalogue itself refuses whoever has not', async () => {
  const catalogue = await refusing((_, authorization) =>
    authorization === undefined ? forbidden : undefined,
  );
  const { tokens, used } = account();
  expect(numbersIn(await walked(listingOf(catalogue.url, { tokens })))).toEqual([0, 1, 2]);
  expect(used).toEqual({ tokens: 1, refused: 0 });
  await expect(walked(listingOf(catalogue.url))).rejects.toMatchObject({
    code: 'unauthorized',
    text: 'The catalogue refuses to list the created products (403), perhaps as it wants a login. Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD, or EARSHOT_ACCESS_TOKEN. It says: Not for you',
  });
});

it('logs in once where the account may not, and says so', async () => {
  const catalogue = await refusing(() => forbidden);
  const { tokens, used } = account();
  const walk = walked(listingOf(catalogue.url, { tokens }), { filter: "Name ne 'x'" });
  await expect(walk).rejects.toMatchObject({
    code: 'unauthorized',
    text: expect.stringMatching(/the account may not\. Log in on .*It says: Not for you$/),
  });
  expect(used).toEqual({ tokens: 1, refused: 0 });
  expect(catalogue.requests).toHaveLength(2);
});
