/** The templates of digests: all that they state stands in their sheets. */
import { describe, expect, it } from 'vitest';
import type { FoundProduct } from '../../../src/domain/products.ts';
import type { DigestScope } from '../../../src/domain/summaries.ts';
import { createProductGenerator } from '../../../src/sandbox/products/product-generator.ts';
import { checkAnswer } from '../../../src/summary/check/check-answer.ts';
import type { DigestEvent } from '../../../src/summary/digest/digest-facts.ts';
import { digestSheet } from '../../../src/summary/digest/digest-sheet.ts';
import { digestText } from '../../../src/summary/digest/digest-text.ts';
import { openPlaces } from '../../../src/summary/places/places.ts';
import { placeOf } from '../../../src/summary/worker/prepare.ts';
import {
  foundProduct,
  indexed,
  missing,
  notifiedProducts,
  recordedProducts,
} from '../facts/found-product.ts';
import { factsOf } from './sample-events.ts';

const places = openPlaces();

function eventOf(product: FoundProduct): DigestEvent {
  const { productId, productName, receivedAtUs, deletionUs } = product.row;
  const event = deletionUs === null ? 'created' : 'deleted';
  return { event, product, productId, productName, receivedAtUs, place: placeOf(product, places) };
}

function verifiedText(events: readonly DigestEvent[], scope: Partial<DigestScope> = {}): string {
  const facts = factsOf(events, { subscription: null, ...scope });
  const text = digestText(facts);
  const check = checkAnswer(text, digestSheet(facts), (words) => places.isPlaceName(words));
  expect(check).toEqual({ safe: true, text, verified: true, doubts: [] });
  return text;
}

/** All of them, one by one, and a few together. */
function expectVerified(all: readonly DigestEvent[]): void {
  verifiedText([...all, ...all.slice(0, 9).map((one) => ({ ...one, event: 'modified' }))]);
  for (let first = 0; first < all.length; first += 1) {
    verifiedText(all.slice(first, first + 1));
    verifiedText(all.slice(first, first + 7), { area: 'Tyrol', subscription: 'alps' });
  }
}

describe('the template of a digest', () => {
  it('is verified for real products', async (context) => {
    if (missing) context.skip(missing);
    const found = await indexed([
      ...recordedProducts(),
      ...notifiedProducts('doc-push-created-s2-l2a.elided.json'),
      ...notifiedProducts('doc-push-deleted-s1-slc.elided.json'),
      ...notifiedProducts('pull-read-after-3-days.json'),
    ]);
    const all = [...found.values()].map(eventOf);
    expectVerified(all);
    expect(all.map((one) => verifiedText([one])).join()).toContain('and the Netherlands');
    expect(verifiedText(all)).toContain(' with a sensing time were sensed between ');
    expect(verifiedText(all)).toMatch(/; \d+ of the notifications of new products came /);
    const filter = `Collection/Name eq 'SENTINEL-3' and ContentDate/Start gt 2014-01-01T00:00:00Z`;
    const some = all.filter(({ product }) => product?.row.collection === 'SENTINEL-3');
    const text = verifiedText(some, { filter });
    expect(text).toContain(`that match the filter "${filter}" arrived`);
    expect(text).toContain('All of them are Sentinel-3 products of the type OL_1_EFR.');
  });

  it('is verified for what is of no known collection', async (context) => {
    if (missing) context.skip(missing);
    const found = await indexed(recordedProducts());
    const events = [...found.values()].map((one) =>
      eventOf({ ...one, row: { ...one.row, productName: 'x', collection: null } }),
    );
    for (const some of [[], events.slice(0, 1), events]) {
      const text = verifiedText(some, { collection: 'OTHER' });
      expect(text).toContain(' of no collection known from ');
    }
  });

  it('is verified for products of the sandbox', () => {
    const generator = createProductGenerator({ seed: 12 });
    const firstMs = Date.UTC(2024, 4, 20);
    const all = Array.from({ length: 60 }, (_, i) => {
      const record = generator.next(firstMs + i * 60_000);
      const { Id: productId, Name: productName, ContentLength: sizeBytes = null } = record;
      const publicationUs = (firstMs + i * 60_000) * 1000;
      const row = { productId, productName, sizeBytes, publicationUs };
      const receivedAtUs = publicationUs + 46_000_000;
      return eventOf(foundProduct({ ...row, receivedAtUs }, { ...record }));
    });
    expectVerified(all);
    expect(digestSheet(factsOf(all)).facts.map(({ label }) => label)).toContain('products by type');
  });
});
