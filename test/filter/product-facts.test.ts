/** Values of records without attributes, from their names and folders. */
import { expect, it } from 'vitest';
import { factsOfRecord } from '../../src/filter/product-facts.ts';
import { productView } from '../../src/filter/product-view.ts';

const attributes = (values: Record<string, string>) => ({
  Attributes: Object.entries(values).map(([Name, Value]) => ({ Name, Value, ValueType: 'String' })),
});

const short = (name: string, serial?: string) => ({
  ...attributes({
    platformShortName: name,
    ...(serial === undefined ? {} : { platformSerialIdentifier: serial }),
  }),
});

it.each<[Record<string, unknown>, string | null, string | null]>([
  [{ Collection: { Name: 'SENTINEL-9' }, Name: 'S2A_X' }, 'SENTINEL-9', 'SENTINEL-2A'],
  // The vendor's tool writes the serial only for A, B and C.
  [{ Name: 'S1D_NEW_FORM', ...short('SENTINEL-1') }, 'SENTINEL-1', 'SENTINEL-1D'],
  [{ Name: 'S1A_X', ...short('SENTINEL-1', 'C') }, 'SENTINEL-1', 'SENTINEL-1C'],
  [{ Name: 'S2A_X', ...short('Sentinel-3') }, 'SENTINEL-3', 'Sentinel-3'],
  [{ S3Path: '/eodata/Sentinel-1-RTC/x', ...short('SENTINEL-1') }, 'SENTINEL-1-RTC', 'SENTINEL-1'],
  [{ Name: 'S1D_IW_GRDH_1SDV_X' }, 'SENTINEL-1', 'SENTINEL-1D'],
  [{ Name: 'S1E_RAW' }, 'SENTINEL-1', 'SENTINEL-1E'],
  [{ Name: 'S2D_MSIL2A_X' }, 'SENTINEL-2', 'SENTINEL-2D'],
  [{ Name: 'S3D_OL_1_EFR' }, 'SENTINEL-3', 'SENTINEL-3D'],
  [{ Name: 'S1__AUX_WND_V2024' }, 'SENTINEL-1', 'SENTINEL-1'],
  [{ Name: 'S5P_OFFL_L2__NO2' }, 'SENTINEL-5P', 'SENTINEL-5P'],
  [{ Name: 'S6A_P4_1B_LR_STD' }, 'SENTINEL-6', 'SENTINEL-6A'],
  [{ Name: 'LO08_L1TP_190024' }, 'LANDSAT-8', 'LANDSAT-8'],
  [{ Name: 'LE07_L1TP_190024' }, 'LANDSAT-7', 'LANDSAT-7'],
  [{ Name: 'SM_OPER_MIR_SMUDP2' }, 'SMOS', 'SMOS'],
  [{ Name: 'ASA_IMP_1PNESA2011' }, 'ENVISAT', 'ENVISAT'],
  [{ S3Path: '/eodata/Aqua/x' }, 'AQUA', 'AQUA'],
  [{ S3Path: '/eodata/TERRAAQUA/x' }, 'TERRAAQUA', null],
  [{ S3Path: '/eodata/Sentinel-5P/TROPOMI/x', Name: 'S2A_X' }, 'SENTINEL-5P', 'SENTINEL-2A'],
  // No satellites.
  [{ S3Path: '/eodata/S2GLC/x', Name: 'S2GLC_T32TQM.tif' }, 'S2GLC', null],
  [{ S3Path: '/eodata/CLMS/x' }, 'CLMS', null],
  [{ S3Path: '/eodata/Other/x', Name: 'SENTINEL something' }, null, null],
  [short('OTHER-1'), null, 'OTHER-1'],
  [{}, null, null],
])('%j has the collection %s and the platform %s', (record, collection, platform) => {
  expect(factsOfRecord(record, null)).toMatchObject({ collection, platform });
  expect(productView(record).text('Collection/Name')).toBe(collection);
});

it.each<[unknown, number | null]>([
  [-1, null],
  [-0.5, null],
  [-(2 ** 40), null],
  ['-1', null],
  [null, null],
  [0, 0],
  [2 ** 40, 2 ** 40],
])('ContentLength %j is the size %j', (ContentLength, sizeBytes) => {
  expect(factsOfRecord({ ContentLength }, null).sizeBytes).toBe(sizeBytes);
});
