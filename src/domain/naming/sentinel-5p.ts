/** Reads names of Sentinel-5P (the mission's file names; the sandbox makes the same, no record is at hand). */
import { instrumentOf } from './instruments.ts';
import { groupsOf, type NameReader, namedProduct, nameTimesUs } from './named-product.ts';

const product =
  /^(?<prefix>S5P_(?<stream>NRTI|OFFL|RPRO)_(?<type>L1B_[A-Z0-9_]{6}|L2__[A-Z0-9_]{6})_(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_(?<orbit>\d{5})_)\d\d_(?<processor>\d{6})_(?<made>\d{8}T\d{6})(?:\.nc)?$/;

const contents: Readonly<Record<string, string>> = {
  L2__AER_AI: 'the ultraviolet aerosol index',
  L2__AER_LH: 'aerosol layer heights',
  L2__CH4___: 'methane (CH4) columns',
  L2__CLOUD_: 'cloud fractions, heights and optical depths',
  L2__CO____: 'carbon monoxide (CO) columns',
  L2__HCHO__: 'formaldehyde (HCHO) columns',
  L2__NO2___: 'nitrogen dioxide (NO2) columns',
  L2__NP_BD3: 'cloud information of another satellite for band 3',
  L2__NP_BD6: 'cloud information of another satellite for band 6',
  L2__NP_BD7: 'cloud information of another satellite for band 7',
  L2__O3____: 'ozone (O3) columns',
  L2__O3_TCL: 'tropospheric ozone (O3) columns',
  L2__O3__PR: 'ozone (O3) profiles',
  L2__SO2___: 'sulphur dioxide (SO2) columns',
  L1B_IR_UVN: 'solar irradiance from the ultraviolet to the near infrared',
  L1B_IR_SIR: 'solar irradiance in the shortwave infrared',
};

const streams: Readonly<Record<string, string>> = {
  NRTI: 'near real time (NRTI)',
  OFFL: 'offline processing (OFFL)',
  RPRO: 'reprocessing (RPRO)',
};

/** What products of a type such as `L2__NO2___` hold; null for an unknown type. */
export function sentinel5pContent(type: string): string | null {
  const [, band] = /^L1B_RA_BD([1-8])$/.exec(type) ?? [];
  if (band !== undefined) return `Earth radiance in band ${band}`;
  return Object.hasOwn(contents, type) ? (contents[type] ?? null) : null;
}

export const sentinel5pName: NameReader = (name) => {
  const match = product.exec(name);
  if (match === null) return null;
  const { prefix, stream, type, start, end, orbit, processor, made } = groupsOf(
    match,
    ...(['prefix', 'stream', 'type', 'start', 'end', 'orbit', 'processor', 'made'] as const),
  );
  const [content, times] = [sentinel5pContent(type), nameTimesUs(start, end, made)];
  if (content === null || times === null) return null;
  return namedProduct({
    satellite: 'Sentinel-5P',
    instrument: instrumentOf('TROPOMI'),
    type,
    level: type.startsWith('L2') ? 'Level-2' : 'Level-1B',
    content,
    timeliness: streams[stream] ?? null,
    startUs: times[0],
    endUs: times[1],
    orbitNumber: Number(orbit),
    baseline: processor.replaceAll(/(..)(?=.)/g, '$1.'),
    madeUs: times[2],
    // A reprocessing begins with another stream, so it is not found by this beginning.
    scene: { prefix, contains: null, key: prefix },
  });
};
