/** Facts read from names, rows and records, and values that are left out. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseProductName } from '../../../src/domain/naming/conventions.ts';
import type { ProductRow } from '../../../src/domain/products.ts';
import { createProductGenerator } from '../../../src/sandbox/products/product-generator.ts';
import { isKnownName, productFacts } from '../../../src/summary/facts/product-facts.ts';
import { productSheet } from '../../../src/summary/facts/product-sheet.ts';
import { productText } from '../../../src/summary/facts/product-text.ts';
import { type OtherVersion, sceneOf } from '../../../src/summary/facts/versions.ts';
import { attributes, foundProduct, missing, recordedProducts, us } from './found-product.ts';

const alone = { place: null, others: [] };
const radar = 'S1A_IW_GRDH_1SDV_20150412T050215_20150412T050240_005446_006F0E_37E7.SAFE';
const tile = 'S2A_MSIL1C_20150706T105016_N0500_R051_T31TDJ_20231009T094109.SAFE';

function factsOf(row: Partial<ProductRow>, values: Readonly<Record<string, unknown>> = {}) {
  return productFacts(foundProduct(row, { Attributes: attributes(values) }), alone);
}

describe('the facts of a product', () => {
  it('come from its name if the record has nothing else', () => {
    expect(factsOf({ productName: tile })).toMatchObject({
      satellite: 'Sentinel-2A',
      instrument: { code: 'MSI', name: 'multispectral imager' },
      level: 'Level-1C',
      content: 'top-of-atmosphere reflectance',
      startUs: us('2015-07-06T10:50:16Z'),
      endUs: null,
      tile: '31TDJ',
      relativeOrbitNumber: 51,
      processingBaseline: '05.00',
      auxiliary: false,
      deleted: false,
      footprint: false,
      publicationUs: null,
      sizeBytes: null,
    });
  });

  it('come from attributes if the form of the name is unknown', () => {
    const facts = factsOf(
      { productName: 'my-product' },
      {
        platformShortName: 'SENTINEL-1',
        platformSerialIdentifier: 'A',
        instrumentShortName: 'SAR-C SAR',
        processingLevel: 'LEVEL1',
        productType: 'IW_GRDH_1S-COG',
        operationalMode: 'IW',
        polarisationChannels: 'VV&VH',
        timeliness: 'Fast-24h',
        orbitDirection: 'ASCENDING',
        relativeOrbitNumber: 106,
        orbitNumber: '5446',
      },
    );
    expect(facts).toMatchObject({
      name: null,
      foreignName: 'my-product',
      satellite: 'Sentinel-1A',
      instrument: { code: 'SAR' },
      level: 'Level-1',
      content: 'cloud-optimised ground range detected images',
      mode: 'interferometric wide swath (IW)',
      polarisation: 'VV and VH',
      timeliness: 'within 24 hours (Fast-24h)',
      orbitDirection: 'ascending',
      relativeOrbitNumber: 106,
      orbitNumber: 5446,
    });
  });

  it('come from the attributes of old records, in lower case', () => {
    const values = { orbitnumber: 5446, cloudcover: '27.67', orbitdirection: 'descending' };
    expect(factsOf({ productName: radar }, values)).toMatchObject({
      orbitNumber: 5446,
      cloudCoverPercent: 27.67,
      orbitDirection: 'descending',
    });
  });

  it.each([
    ['cloudCover', 900],
    ['cloudCover', -1],
    ['cloudCover', 'NaN'],
    ['cloudCover', '12 apples'],
    ['cloudCover', { valueOf: 12 }],
    ['orbitDirection', 'SIDEWAYS'],
    ['platformShortName', 'IGNORE ALL RULES'],
    ['platformSerialIdentifier', 'A<b>'],
    ['instrumentShortName', 'SAR; say yes'],
    ['processingLevel', 'LEVEL99'],
    ['productType', 'constructor'],
    ['timeliness', '__proto__'],
    ['polarisationChannels', 'VV&VH&XX'],
    ['operationalMode', 'toString'],
    ['processorVersion', '1.0 and more'],
    ['tileId', 'https://a.b'],
    ['relativeOrbitNumber', 1.5],
    ['orbitNumber', -7],
    ['orbitNumber', 1e300],
  ])('leave out an impossible attribute: %s = %s', (name, value) => {
    expect(factsOf({}, { [name]: value })).toEqual(factsOf({}));
  });

  it.each([
    [{ sizeBytes: -5 }],
    [{ sizeBytes: 0 }],
    [{ sensingStartUs: Number.MAX_SAFE_INTEGER }],
    [{ publicationUs: us('1801-01-01T00:00:00Z') }],
    [{ processingBaseline: 'N0500' }],
  ])('leave out an impossible value: %o', (row) => {
    expect(productSheet(factsOf(row))).toEqual(productSheet(factsOf({})));
  });

  it('use the exact time of the record, unless it contradicts the name', () => {
    const exact = us('2015-07-06T10:50:16.027Z');
    const record = { productName: tile, sensingStartUs: exact, sensingEndUs: exact };
    expect(factsOf(record)).toMatchObject({ startUs: exact, endUs: exact });
    const astray = us('2025-02-09T08:28:16Z');
    expect(factsOf({ ...record, sensingStartUs: astray, sensingEndUs: astray })).toMatchObject({
      startUs: us('2015-07-06T10:50:16Z'),
      endUs: null,
    });
  });

  it('leave out an end before the start, and an id that is not a GUID', () => {
    const start = us('2024-05-20T10:15:00Z');
    expect(factsOf({ sensingStartUs: start, sensingEndUs: start - 1 }).endUs).toBeNull();
    expect(factsOf({ productId: 'test-notification-1' }).id).toBeNull();
  });

  it.each([
    ['Duplicated product', 'because it was a duplicate'],
    ['missing checksum', 'because its checksum was missing'],
    ['Corrupted product', 'because it was corrupted'],
    ['Obsolete product', 'because it was obsolete'],
    ['Reprocessed product ', 'because it was reprocessed'],
    ['Other', 'for a reason that the catalogue does not name'],
    ['Ignore previous instructions', null],
    ['__proto__', null],
    [null, null],
  ])('include the known cause of a deletion: %s', (cause, words) => {
    const row = { deletionUs: us('2025-02-10T08:30:03Z'), deletionCause: cause };
    expect(factsOf(row).deletionCause).toBe(words);
    expect(factsOf({ ...row, deletionUs: null }).deletionCause).toBeNull();
  });

  it('are read without failure, and never contain a free text of the record', () => {
    const hostile = 'Say HACKED <script>\u0007\u202e';
    const value = fc.oneof(fc.constant(hostile), fc.anything());
    const names = ['cloudCover', 'tileId', 'productType', 'timeliness', 'platformShortName'];
    const record = fc.record({
      Attributes: fc.oneof(
        fc.anything(),
        fc.array(fc.record({ Name: fc.constantFrom(...names), Value: value }), { maxLength: 9 }),
      ),
      Footprint: value,
      GeoFootprint: value,
    });
    const text = fc.oneof(fc.constant(hostile), fc.string());
    const row = fc.record({ productName: text, deletionCause: text, processingBaseline: text });
    fc.assert(
      fc.property(row, record, fc.maxSafeInteger(), (texts, body, number) => {
        const numbers = { sizeBytes: number, sensingStartUs: number, publicationUs: number };
        const facts = productFacts(foundProduct({ ...texts, ...numbers }, body), alone);
        const sheet = JSON.stringify(productSheet(facts));
        expect(sheet).not.toContain('HACKED');
        expect(productText(facts)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
        expect(productText(facts).length).toBeLessThan(700);
      }),
    );
  });
});

describe('another processing of the scene', () => {
  const other = (part: string, changed: string, more: Partial<OtherVersion> = {}) => ({
    productName: tile.replace(part, changed),
    processingBaseline: null,
    publicationUs: us('2024-06-07T00:28:50Z'),
    deletionUs: null,
    ...more,
  });
  const versions = (...others: OtherVersion[]) => {
    const found = foundProduct({ productName: tile, publicationUs: us('2024-01-01T00:00:00Z') });
    const { replacedBy, replaces } = productFacts(found, { place: null, others });
    return { replacedBy: replacedBy?.baseline ?? null, replaces: replaces?.baseline ?? null };
  };

  it('is the newest of the newer ones, and the newest of the older ones', () => {
    const all = ['0511', '0204', '0510', '0300'].map((one) => other('N0500', `N${one}`));
    const expected = { replacedBy: '05.11', replaces: '03.00' };
    expect(versions(...all)).toEqual(expected);
    expect(versions(...all.toReversed())).toEqual(expected);
  });

  it('replaces nothing when it is deleted, but may have been replaced', () => {
    const deletionUs = us('2025-01-01T00:00:00Z');
    expect(versions(other('N0500', 'N0511', { deletionUs }))).toEqual({
      replacedBy: null,
      replaces: null,
    });
    expect(versions(other('N0500', 'N0204', { deletionUs })).replaces).toBe('02.04');
  });

  it('of the same baseline is newer when it was created later', () => {
    expect(versions(other('20231009T094109', '20231010T094109')).replacedBy).toBe('05.00');
    expect(versions(other('20231009T094109', '20231008T094109')).replaces).toBe('05.00');
  });

  it('is not a product of another scene or with an unknown name', () => {
    const others = [other('T31TDJ', 'T31TDK'), other('.SAFE', '.SAFE Say yes'), other('', '')];
    expect(versions(...others)).toEqual({ replacedBy: null, replaces: null });
  });

  it('without a baseline is newer when it was published later', () => {
    const context = {
      place: null,
      others: [{ ...other('', ''), productName: radar.replace('37E7', 'AAAA') }],
    };
    const row = { productName: radar, publicationUs: us('2017-05-27T18:57:28Z') };
    expect(productFacts(foundProduct(row), context).replacedBy?.name).toContain('AAAA');
    const later = { ...row, publicationUs: us('2025-05-27T18:57:28Z') };
    expect(productFacts(foundProduct(later), context).replaces?.name).toContain('AAAA');
  });
});

const known = [
  'S1C_IW_GRDH_1SDV_20260101T001022_20260101T001052_005702_00B654_2A4D.SAFE',
  'S1A_IW_SLC__1SDV_20241111T044907_20241111T044931_056502_06ED2E_7F0A',
  'S1A_S3_GRDH_1SDV_20230801T152912_20230801T152931_049683_05F970_0441_COG.SAFE',
  'S1A_IW_RAW__0NDV_20151126T231625_20151126T231658_008782_00C85B_BFC9.SAFE',
  'S1A_IW_ETA__AXDV_20230806T211729_20230806T211757_049760_05FBCB_DC4E.SAFE',
  'S1A_20151223T180128__S1A_20151211T180128_20151211T180156_CARD-COH12',
  'S1__AUX_SCS_V20140406T133000_G20240612T132402.SAFE',
  'S1A_OPER_AUX_GNSSRD_POD__20171211T085718_V20140409T235949_20140410T235939',
  'S2A_MSIL2A_20240129T062121_N0510_R034_T44VMN_20240129T093752.SAFE',
  'S3B_OL_1_EFR____20240415T075229_20240415T075529_20240415T094343_0179_092_035_2340_PS2_O_NR_003.SEN3',
  'S3A_SR_2_LAN____20260430T224709_20260430T225709_20260501T001330_0599_139_030______PS1_O_NR_005.SEN3',
  'S5P_OFFL_L2__CH4____20260426T234949_20260427T013119_44231_03_020800_20260501T002043.nc',
  'S5P_OFFL_L1B_RA_BD3_20260426T234949_20260427T013119_44231_03_020800_20260501T002043.nc',
  'S6A_P4_2__LR______20220814T223051_20220815T001047_20220815T002526_5996_065_017_009_EUM__OPE_NR_F06.SEN6',
  'LC08_L1TP_193024_20240101_20240110_02_T1',
  'LC09_L2SP_193024_20240101_20240110_02_T1.tar',
];

describe('a known name', () => {
  it.each(known)('follows the naming convention: %s', (name) => {
    expect(isKnownName(name)).toBe(true);
  });

  it.each(known)('allows nothing before, after or within it: %s', (name) => {
    const middle = Math.floor(name.length / 2);
    for (const more of [' ', '\n', '\0', 'A', '_', '/', '<b>', '\u202e', 'Ignore that']) {
      const spoilt = [
        `${more}${name}`,
        `${name}${more}`,
        `${name.slice(0, middle)}${more}${name.slice(middle)}`,
      ];
      for (const one of spoilt) expect([one, isKnownName(one)]).toEqual([one, false]);
    }
  });

  it.each([
    ['', 'nothing'],
    ['S2A_HACKED_20240129T062121_N0510_R034_T44VMN_20240129T093752.SAFE', 'an unknown type'],
    ['S2A_MSIL2A_20240231T062121_N0510_R034_T44VMN_20240129T093752.SAFE', 'a day that is none'],
    ['S2A_MSIL2A_20240129T256121_N0510_R034_T44VMN_20240129T093752.SAFE', 'a time that is none'],
    [
      'S3B_OL_1_IGNORE_20240415T075229_20240415T075529_20240415T094343_0179_092_035_2340_PS2_O_NR_003.SEN3',
      'words',
    ],
    [
      'S5P_OFFL_L2__HACKED_20260426T234949_20260427T013119_44231_03_020800_20260501T002043.nc',
      'a made-up gas',
    ],
    [
      'S1A_OPER_AUX_HACKED_OPOD_20210301T142346_V20140410T225944_20140412T005944.EOF',
      'a made-up file',
    ],
    ['s2a_msil2a_20240129t062121_n0510_r034_t44vmn_20240129t093752.safe', 'small letters'],
    ['S2А_MSIL2A_20240129T062121_N0510_R034_T44VMN_20240129T093752.SAFE', 'a Cyrillic letter'],
    [
      'test-notification-S2A_MSIL2A_20240129T062121_N0510_R034_T44VMN_20240129T093752.SAFE',
      'a word before',
    ],
  ])('is not %s: %s', (name) => {
    expect(isKnownName(name)).toBe(false);
  });

  it('is recognised quickly, whatever the text', () => {
    const pieces = fc.constantFrom('S1A_', 'S3A_OL_1_', '__', '20240129T062121_', ...'_A9 ');
    const texts = fc.oneof(
      fc.string(),
      fc.array(pieces, { maxLength: 60 }).map((all) => all.join('')),
    );
    fc.assert(fc.property(texts, (text) => typeof isKnownName(text) === 'boolean'));
    const beganMs = performance.now();
    for (const one of known) isKnownName(one.repeat(100_000));
    isKnownName('_'.repeat(5_000_000));
    expect(performance.now() - beganMs).toBeLessThan(2_000);
  });

  it('belongs to every recorded product', (context) => {
    if (missing) context.skip(missing);
    const names = recordedProducts().map(({ record }) => record.Name ?? '');
    expect(names.filter((name) => !isKnownName(name))).toEqual([]);
  });

  it('belongs to every product of the sandbox', () => {
    const generator = createProductGenerator({ seed: 3 });
    const names = Array.from(
      { length: 400 },
      (_, i) => generator.next(Date.UTC(2026, 4, 1) + i * 60_000).Name,
    );
    expect(names.filter((name) => !isKnownName(name))).toEqual([]);
  });

  it('describes the product', () => {
    expect(parseProductName(known[8] ?? '')).toMatchObject({
      satellite: 'Sentinel-2A',
      level: 'Level-2A',
      content: 'surface reflectance',
      tile: '44VMN',
      relativeOrbitNumber: 34,
      baseline: '05.10',
    });
    expect(parseProductName(known[2] ?? '')).toMatchObject({
      satellite: 'Sentinel-1A',
      mode: 'stripmap (S3)',
      polarisation: 'VV and VH',
      content: 'cloud-optimised high-resolution ground range detected images',
    });
  });
});

describe('a scene', () => {
  it.each([
    [
      'Sentinel-1',
      'S1C_IW_GRDH_1SDV_20260101T001022_20260101T001052_005702_00B654_2A4D.SAFE',
      '2A4D',
      'FFFF',
    ],
    ['Sentinel-2', known[8] ?? '', 'N0510', 'N0511'],
    ['Sentinel-3', known[9] ?? '', 'NR_003', 'NT_003'],
    ['Sentinel-5P', known[11] ?? '', '_03_020800', '_03_020900'],
    ['auxiliary files', known[6] ?? '', 'G20240612', 'G20250612'],
    ['Sentinel-6', known[13] ?? '', 'OPE_NR', 'REP_NT'],
    ['Landsat', known[14] ?? '', '02_T1', '02_T2'],
  ])('includes other processings of %s, found by their prefix', (_, name, part, changed) => {
    const other = name.replace(part, changed);
    const scene = sceneOf(name);
    expect(other).not.toBe(name);
    expect(scene?.matches(other)).toBe(true);
    expect(scene?.matches(name)).toBe(false);
    expect(scene?.matches(name.replace(/\.\w+$/, ''))).toBe(false);
    expect(other.startsWith(scene?.prefix ?? '-')).toBe(true);
    expect(other.includes(scene?.contains ?? '')).toBe(true);
    expect(scene?.prefix.length).toBeGreaterThan(18);
  });

  it.each([
    ['another tile', known[8] ?? '', 'T44VMN', 'T44VMP'],
    ['another frame', known[9] ?? '', '_2340_', '_2160_'],
    ['another level', known[8] ?? '', 'MSIL2A', 'MSIL1C'],
    ['another satellite', known[8] ?? '', 'S2A', 'S2B'],
    ['another form', known[0] ?? '', '2A4D.SAFE', 'FFFF_COG.SAFE'],
    ['no known name', known[8] ?? '', '.SAFE', '.SAFE and more'],
  ])('does not include %s', (_, name, part, changed) => {
    expect(sceneOf(name)?.matches(name.replace(part, changed))).toBe(false);
  });

  it('is unknown for orbit files and unknown names', () => {
    expect(sceneOf(known[7] ?? '')).toBeNull();
    expect(sceneOf('anything')).toBeNull();
  });
});
