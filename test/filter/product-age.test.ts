import fc from 'fast-check';
import { expect, it } from 'vitest';
import { dayUs, formatDateUs } from '../../src/core/terms/dates.ts';
import { isTooOld } from '../../src/filter/product-age.ts';
import { productView } from '../../src/filter/product-view.ts';
import { times } from '../helpers/thorough.ts';

const date = fc.integer({ min: Date.UTC(1985, 0) * 1000, max: Date.UTC(2030, 0) * 1000 });
const span = fc.oneof(fc.constant(0), fc.constant(1), fc.integer({ min: 0, max: 4_000 * dayUs }));

it('a product is too old if its publication is later than the maximum age after the end of sensing', () => {
  const property = fc.property(date, span, span, span, (startUs, sensingUs, ageUs, maxAgeUs) => {
    const endUs = startUs + sensingUs;
    const [Start, End] = [formatDateUs(startUs), formatDateUs(endUs)];
    const publishedAt = (us: number) => ({ PublicationDate: formatDateUs(us) });
    const isOld = (record: object, us: number | null = maxAgeUs) =>
      isTooOld(productView({ ...record }), us);
    const ContentDate = { Start, End };
    // The limit itself is not too old, whatever the dates are.
    expect(isOld({ ContentDate, ...publishedAt(endUs + maxAgeUs) })).toBe(false);
    expect(isOld({ ContentDate, ...publishedAt(endUs + maxAgeUs + 1) })).toBe(true);
    expect(isOld({ ContentDate: { Start }, ...publishedAt(startUs + maxAgeUs) })).toBe(false);
    expect(isOld({ ContentDate: { Start }, ...publishedAt(startUs + maxAgeUs + 1) })).toBe(true);
    const published = publishedAt(endUs + ageUs);
    expect(isOld({ ContentDate, ...published })).toBe(ageUs > maxAgeUs);
    // Published before the end of sensing, or without one of the dates, or without a limit.
    expect(isOld({ ContentDate, ...publishedAt(endUs - 1 - ageUs) })).toBe(false);
    for (const record of [{ ContentDate }, { ContentDate: null, ...published }, published, {}]) {
      expect(isOld(record)).toBe(false);
    }
    expect(isOld({ ContentDate, ...published }, null)).toBe(false);
  });
  fc.assert(property, { numRuns: times(200, 5_000) });
});
