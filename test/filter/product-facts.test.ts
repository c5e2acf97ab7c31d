/** Values of records without attributes, from their names and folders. */
import { expect, it } from 'vitest';
import { factsOfRecord } from '../../src/filter/product-facts.ts';

const attributes = (values: Record<string, string>) => ({
  Attributes: Object.entries(values).map(([Name, Value]) => ({ Name, Value, ValueType: 'String' })),
});

it.each<[Record<string, unknown>, string | null, string | null]>([
  // The vendor's tool writes the serial only for A, B and C.
  [
    { Name: 'S1D_NEW_FORM', ...attributes({ platformShortName: 'SENTINEL-1' }) },
    'SENTINEL-1',
    'SENTINEL-1D',
  ],
  [
    {
      Name: 'S1A_X',
      ...attributes({ platformShortName: 'SENTINEL-1', platformSerialIdentifier: 'C' }),
    },
    'SENTINEL-1',
    'SENTINEL-1C',
  ],
  [{ Name: 'S1D_IW_GRDH_1SDV_X' }, 'SENTINEL-1', 'SENTINEL-1D'],
  [{ Name: 'S1E_RAW' }, 'SENTINEL-1', 'SENTINEL-1E'],
  [{ Name: 'S2D_MSIL2A_X' }, 'SENTINEL-2', 'SENTINEL-2D'],
  [{ Name: 'S3D_OL_1_EFR' }, 'SENTINEL-3', 'SENTINEL-3D'],
  [{ Name: 'S1__AUX_WND_V2024' }, 'SENTINEL-1', 'SENTINEL-1'],
  [{ Name: 'S5P_OFFL_L2__NO2' }, 'SENTINEL-5P', 'SENTINEL-5P'],
  [{ Name: 'LC08_L1TP_190024' }, 'LANDSAT-8', 'LANDSAT-8'],
  [{ S3Path: '/eodata/TERRA/x' }, 'TERRA', 'TERRA'],
  [{ S3Path: '/eodata/Aqua/x' }, 'AQUA', 'AQUA'],
  [{ S3Path: '/eodata/Sentinel-3/x' }, 'SENTINEL-3', 'SENTINEL-3'],
  // No satellites.
  [{ S3Path: '/eodata/COP-DEM/x' }, 'COP-DEM', null],
  [{ S3Path: '/eodata/S2GLC/x', Name: 'S2GLC_T32TQM.tif' }, 'S2GLC', null],
  [{ S3Path: '/eodata/CLMS/x' }, 'CLMS', null],
  [{ S3Path: '/eodata/Other/x', Name: 'OTHER' }, null, null],
  [attributes({ platformShortName: 'OTHER-1' }), null, 'OTHER-1'],
])('%j has the collection %s and the platform %s', (record, collection, platform) => {
  expect(factsOfRecord(record, null)).toMatchObject({ collection, platform });
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
