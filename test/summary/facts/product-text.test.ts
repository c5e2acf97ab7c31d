/** The template: its text, and that every statement is in the sheet. */
import { describe, expect, it } from 'vitest';
import { productView } from '../../../src/filter/product-view.ts';
import { createProductGenerator } from '../../../src/sandbox/products/product-generator.ts';
import { checkAnswer } from '../../../src/summary/check/check-answer.ts';
import { type ProductFacts, productFacts } from '../../../src/summary/facts/product-facts.ts';
import { productSheet } from '../../../src/summary/facts/product-sheet.ts';
import { productText } from '../../../src/summary/facts/product-text.ts';
import type { Place } from '../../../src/summary/places/globe.ts';
import { openPlaces } from '../../../src/summary/places/places.ts';
import {
  allProducts,
  attributes,
  foundProduct,
  indexed,
  missing,
  near,
  place,
  us,
} from './found-product.ts';

const tile = 'S2A_MSIL2A_20240129T062121_N0510_R034_T44VMN_20240129T093752.SAFE';
const published = {
  sensingStartUs: us('2024-01-29T06:21:21.024Z'),
  publicationUs: us('2024-01-29T10:58:20.247Z'),
  receivedAtUs: us('2024-01-29T10:59:08.698Z'),
  sizeBytes: 769_373_106,
  online: true,
};
const places = openPlaces();
const russia = place({ Russia: 1 }, {}, [near('Nizhnevartovsk', 'Russia', 140, 'east')]);

function textOf(
  row: Parameters<typeof foundProduct>[0],
  record: Readonly<Record<string, unknown>> = {},
  where: Place | null = null,
  others: Parameters<typeof productFacts>[1]['others'] = [],
): string {
  const facts = productFacts(foundProduct(row, record), { place: where, others });
  expectSound(facts);
  return productText(facts);
}

/** Checks the form of the text, and that every statement is in the sheet. */
function expectSound(facts: ProductFacts): void {
  const text = productText(facts);
  expect(text).not.toMatch(
    /null|undefined|NaN|\[object|\( | \)|\(\)| {2}| ,| \.|,,|\.\.|\bmore than 1\b/,
  );
  expect(text).toMatch(/^[A-Z][^\n]*\.$/);
  expect(text.length).toBeLessThanOrEqual(600);
  const sentences = text.split(/\.(?= [A-Z]|$)/).length - 1;
  expect([text, sentences >= 1 && sentences <= 4]).toEqual([text, true]);
  if (facts.foreignName !== null) return;
  const sheet = productSheet(facts);
  const all = sheet.facts.map((fact) => fact.text).join(' | ');
  const claims = text.match(/\d[\d,.:]*\d|\d|(?<!^|\. )\b[A-Z][\p{L}\d-]*/gu) ?? [];
  expect(claims.filter((claim) => !all.includes(claim))).toEqual([]);
  const check = checkAnswer(text, sheet, (words) => places.isPlaceName(words));
  expect([text, check]).toEqual([text, { safe: true, text, verified: true, doubts: [] }]);
}

describe('the template', () => {
  it('describes a tile of Sentinel-2', () => {
    const Attributes = attributes({ cloudCover: 12.34, orbitNumber: 44_941 });
    const row = { productName: tile, ...published };
    expect(textOf(row, { Attributes }, russia)).toBe(
      'This Sentinel-2A product holds surface reflectance (Level-2A, processing baseline 05.10) from the ' +
        'multispectral imager (MSI). It was sensed on 29 January 2024 06:21 UTC over Russia, about 140 km east ' +
        'of Nizhnevartovsk. The scene covers 12,056 km², lies in tile 44VMN, was taken on relative orbit 34 and ' +
        'has a cloud cover of 12.3 %. It was published on 29 January 2024 10:58 UTC (4 h 37 min after sensing), ' +
        'was received 48 s later and has a size of 769.4 MB.',
    );
  });

  it('describes a granule of Sentinel-5P', () => {
    const productName =
      'S5P_NRTI_L2__NO2____20260430T213954_20260430T214454_44286_03_020800_20260501T000539.nc';
    expect(textOf({ productName }, {}, place({}, { 'South Pacific Ocean': 1 }))).toBe(
      'This Sentinel-5P product holds nitrogen dioxide (NO2) columns (Level-2, processor version 02.08.00, near real time) ' +
        'from the ultraviolet to shortwave-infrared spectrometer (TROPOMI). It was sensed for 5 min from ' +
        '30 April 2026 21:39 UTC over the South Pacific Ocean. The scene covers 12,056 km². ' +
        'It was first received on 10 February 2025 08:30 UTC.',
    );
  });

  it('describes an auxiliary file, and what replaced it', () => {
    const productName = 'S1A_AUX_PP1_V20140406T133000_G20240423T074732.SAFE';
    const other = {
      productName: 'S1A_AUX_PP1_V20140406T133000_G20250515T131317.SAFE',
      processingBaseline: null,
      publicationUs: us('2025-05-15T13:18:00Z'),
      deletionUs: null,
    };
    expect(textOf({ productName, sizeBytes: 30_100 }, {}, null, [other])).toBe(
      'This auxiliary file of Sentinel-1A holds parameters of the Level-1 processor. It is valid from ' +
        '6 April 2014 13:30 UTC on. It was first received on 10 February 2025 08:30 UTC, has a size of 30.1 kB ' +
        'and was replaced by a newer version (published on 15 May 2025 13:18 UTC).',
    );
  });

  it('describes a deleted product, why, and what it replaced', () => {
    const row = {
      productName: tile,
      deletionUs: us('2025-02-10T08:30:03Z'),
      deletionCause: 'Duplicated product',
    };
    const older = {
      productName: tile.replace('N0510', 'N0400'),
      processingBaseline: null,
      publicationUs: null,
      deletionUs: null,
    };
    expect(textOf(row, {}, russia, [older])).toBe(
      'This Sentinel-2A product holds surface reflectance (Level-2A, processing baseline 05.10) from the ' +
        'multispectral imager (MSI). It was deleted from the catalogue on 10 February 2025 08:30 UTC because it ' +
        'was a duplicate. It was sensed on 29 January 2024 06:21 UTC over Russia, about 140 km east of ' +
        'Nizhnevartovsk. It replaced an older processing (processing baseline 04.00).',
    );
  });

  it('describes a product without a footprint that is offline', () => {
    const row = { productName: tile, ...published, online: false };
    const record = { Footprint: null };
    expect(textOf(row, record)).toContain(
      'It was sensed on 29 January 2024 06:21 UTC; the place is not known, because it has no footprint.',
    );
    expect(textOf(row, record)).toMatch(/48 s later, has a size of 769\.4 MB and is offline\.$/);
  });

  it('describes a record with almost no content', () => {
    expect(textOf({ productName: null })).toBe(
      'The content of this product is not known, because its record has not arrived. It was first received on 10 February 2025 08:30 UTC.',
    );
    expect(textOf({ productName: null }, { Online: true })).toMatch(
      /^The content of this product is not known\. /,
    );
    expect(textOf({ productName: tile })).toContain(
      '06:21 UTC; the place is not known, because its record has not arrived.',
    );
    expect(textOf({ productName: 'a "new"\n\tproduct\u202e' })).toBe(
      'This product named "a \'new\' product\ufffd" has no known type. It was first received on 10 February 2025 08:30 UTC.',
    );
    expect(textOf({}, { Attributes: attributes({ processingLevel: 'L2' }) })).toMatch(
      /^This product is of Level-2\. /,
    );
    expect(textOf({}, { Attributes: attributes({ platformShortName: 'ENVISAT' }) })).toMatch(
      /^This Envisat product has no known type\. /,
    );
  });

  it('describes both scenes that a product compares', () => {
    const productName = 'S1A_20151223T180128__S1A_20151211T180128_20151211T180156_CARD-COH12';
    expect(textOf({ productName }, {}, russia)).toContain(
      'It was sensed on 11 December 2015 18:01 UTC and again on 23 December 2015 18:01 UTC over Russia,',
    );
  });

  it('describes the span of an auxiliary file: covered for measurements, otherwise valid', () => {
    const name = (type: string) =>
      `S1A_OPER_AUX_${type}_OPOD_20210316T193849_V20200104T225942_20200106T005942.EOF`;
    const span = 'from 4 January 2020 22:59 UTC until 6 January 2020 00:59 UTC.';
    expect(textOf({ productName: name('GNSSRD') })).toContain(`It covers the time ${span}`);
    expect(textOf({ productName: name('POEORB') })).toContain(`It is valid ${span}`);
  });

  it('states the creation time when the name of the mission has it', () => {
    const name = (timeliness: string) =>
      `S3B_OL_1_EFR____20240415T075229_20240415T075529_20240415T094343_0179_092_035_2340_PS2_O_${timeliness}_003.SEN3`;
    expect(textOf({ productName: name('NR') })).toContain(', near real time) from');
    expect(textOf({ productName: name('NT') })).toContain(', non-time-critical) from');
    const Attributes = attributes({ timeliness: 'Fast-24h', processingLevel: 'L1' });
    expect(textOf({}, { Attributes })).not.toContain('24');
  });

  it('describes a scene of Landsat', () => {
    const productName = 'LC08_L1TP_193024_20240101_20240110_02_T1';
    expect(textOf({ productName }, {}, russia)).toMatch(
      /^This Landsat-8 product holds terrain-corrected images \(Level-1\) .* lies on path 193, row 24\./,
    );
  });

  it('omits the scene rather than exceed the length limit', () => {
    const long = Array.from({ length: 3 }, (_, i) =>
      near(`${'Llanfairpwllgwyngyll'.repeat(2)}${i}`, 'Wales'),
    );
    const where = place({ 'United Kingdom': 0.5, Ireland: 0.4 }, { 'Irish Sea': 0.1 }, long);
    const text = textOf({ productName: tile, ...published }, {}, where);
    expect(text).not.toContain('The scene');
    expect(text).toContain('over parts of the United Kingdom, Ireland and the Irish Sea.');
  });

  it('is correct for products of the sandbox, in any state', () => {
    const generator = createProductGenerator({ seed: 12 });
    const firstMs = Date.UTC(2026, 4, 1);
    for (let i = 0; i < 150; i += 1) {
      const record = generator.next(firstMs + i * 60_000);
      const geometry = productView(record).geometry();
      const row = {
        productName: record.Name,
        publicationUs: (firstMs + i * 60_000) * 1000,
        receivedAtUs: (firstMs + i * 61_000) * 1000 + 46e6,
        sizeBytes: record.ContentLength ?? null,
        ...(i % 9 === 0 ? { deletionUs: us('2026-06-01T00:00:00Z') } : {}),
      };
      const context = { place: geometry === null ? null : places.placeOf(geometry), others: [] };
      expectSound(productFacts(foundProduct(row, record), context));
    }
  });

  it('is correct for all recorded products', async (context) => {
    if (missing) context.skip(missing);
    const all = allProducts();
    const found = await indexed(all);
    expect(found.size).toBe(new Set(all.map(({ record }) => record.Id)).size);
    for (const one of found.values()) {
      const geometry = productView(one.record).geometry();
      const place = geometry === null ? null : places.placeOf(geometry);
      expectSound(productFacts(one, { place, others: [] }));
    }
  });
});
