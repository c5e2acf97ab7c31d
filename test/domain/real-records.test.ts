/** Real records of the catalogue, documented examples, and our own made-up products are all accepted. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createProductGenerator } from '../../src/sandbox/products/product-generator.ts';
import { read, readOne, varied } from './sample-notification.ts';

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';

/** The notification of a product, as the catalogue would send it. */
function notificationOf(product: { Id: string; Name: string }) {
  return varied({ ProductId: product.Id, ProductName: product.Name, value: product });
}

describe('the reader accepts', () => {
  it('every recorded product record, without drift', (context) => {
    if (missing) context.skip(missing);
    const lines = readFileSync(new URL('products.jsonl', fixtures), 'utf8').trim().split('\n');
    expect(lines.length).toBeGreaterThan(100);
    for (const line of lines) {
      const product = JSON.parse(line);
      const read = readOne(notificationOf(product));
      expect(read).toMatchObject({ productId: product.Id, productName: product.Name, drift: [] });
    }
  });

  it('every documented example of a notification', (context) => {
    if (missing) context.skip(missing);
    const folder = new URL('notifications/', fixtures);
    const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) {
      const body = readFileSync(new URL(name, folder));
      const { notifications, faults, drift } = read(new Uint8Array(body));
      expect(faults, name).toEqual([]);
      expect(notifications.length, name).toBeGreaterThan(0);
      expect(notifications.every(({ notificationDateUs }) => notificationDateUs !== null)).toBe(
        true,
      );
      expect(drift.filter((shape) => shape.startsWith('unknown-field:'))).toEqual([]);
    }
  });

  it('the drift that the documented examples are known for', (context) => {
    if (missing) context.skip(missing);
    const driftOf = (name: string) =>
      new Set(read(new Uint8Array(readFileSync(new URL(`notifications/${name}`, fixtures)))).drift);
    expect(driftOf('push-created-s1-cog-vendor-sample.capital-Value.json')).toEqual(
      new Set(['value-capitalised', 'ack-id-absent']),
    );
    expect(driftOf('pull-read-after-3-days.json')).toEqual(
      new Set(['body-array', 'product-name-absent', 'value-absent']),
    );
    expect(driftOf('doc-push-deleted-s1-slc.elided.json')).toEqual(
      new Set(['body-array', 'ack-id-absent']),
    );
  });

  it('products of our own making: new, modified and deleted', () => {
    const generator = createProductGenerator({ seed: 11 });
    const firstMs = Date.UTC(2026, 4, 1);
    for (let i = 0; i < 300; i += 1) {
      const product = generator.next(firstMs + i * 1000);
      const later = generator.modified(product, firstMs + i * 1000 + 500);
      const gone = generator.deleted(product, firstMs + i * 1000 + 900);
      for (const each of [product, later, gone]) {
        expect(readOne(notificationOf(each))).toMatchObject({ productId: product.Id, drift: [] });
      }
    }
  });
});
