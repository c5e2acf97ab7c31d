/** Which names are taken for a mission's own, and which products are of one scene. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readName } from '../../../src/domain/naming/read-name.ts';
import { createProductGenerator } from '../../../src/sandbox/products/product-generator.ts';
import { isKnownName } from '../../../src/summary/facts/product-facts.ts';
import { sceneOf } from '../../../src/summary/facts/versions.ts';
import { missing, recordedProducts } from './found-product.ts';

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
  it.each(known)('is one that follows the convention: %s', (name) => {
    expect(isKnownName(name)).toBe(true);
  });

  it.each(known)('lets nothing stand before, behind or within: %s', (name) => {
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

  it('is judged in no time, whatever it is', () => {
    const pieces = fc.constantFrom(
      'S1A_',
      'S3A_OL_1_',
      '_',
      '__',
      '20240129T062121_',
      'A',
      '9',
      ' ',
    );
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

  it('is what all recorded products have', (context) => {
    if (missing) context.skip(missing);
    const names = recordedProducts().map(({ record }) => record.Name ?? '');
    expect(names.filter((name) => !isKnownName(name))).toEqual([]);
  });

  it('is what all products of the sandbox have', () => {
    const generator = createProductGenerator({ seed: 3 });
    const names = Array.from(
      { length: 400 },
      (_, i) => generator.next(Date.UTC(2026, 4, 1) + i * 60_000).Name,
    );
    expect(names.filter((name) => !isKnownName(name))).toEqual([]);
  });

  it('tells what the product is', () => {
    expect(readName(known[8] ?? '')).toMatchObject({
      satellite: 'Sentinel-2A',
      level: 'Level-2A',
      content: 'surface reflectance',
      tile: '44VMN',
      relativeOrbitNumber: 34,
      baseline: '05.10',
    });
    expect(readName(known[2] ?? '')).toMatchObject({
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
  ])('holds other processings of %s, found by their beginning', (_, name, part, changed) => {
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
  ])('does not hold %s', (_, name, part, changed) => {
    expect(sceneOf(name)?.matches(name.replace(part, changed))).toBe(false);
  });

  it('is not known of orbit files and of unknown names', () => {
    expect(sceneOf(known[7] ?? '')).toBeNull();
    expect(sceneOf('anything')).toBeNull();
  });
});
