/** Converts attribute codes to text; unknown codes have none. */

import { findMission } from '../../domain/missions.ts';
import {
  auxiliaryContent,
  modePhrase,
  sentinel3Content,
  sentinel5pContent,
} from '../../domain/naming/conventions.ts';
import { lookup, timelinesses as nameTimelinesses } from '../../domain/naming/product-name.ts';

/** Returns `Sentinel-2A` from platformShortName and platformSerialIdentifier; null for an unknown platform. */
export function satelliteOf(platform: string | null, serial: string | null): string | null {
  const { title = null, satellite } = findMission(platform) ?? {};
  if (title === null || satellite === undefined) return null;
  return satellite === 'letter' && /^[A-Z]$/.test(serial ?? '') ? `${title}${serial}` : title;
}

const productTypes: Readonly<Record<string, string>> = {
  S2MSI1C: 'top-of-atmosphere reflectance',
  S2MSI2A: 'surface reflectance',
  'CARD-BS': 'terrain-corrected radar backscatter',
  'CARD-COH6': 'interferometric coherence over 6 days',
  'CARD-COH12': 'interferometric coherence over 12 days',
};

/** By the part after the mode, as in `IW_SLC__1S`. */
const radarTypes: readonly (readonly [RegExp, string])[] = [
  [/^SLC__1S$/, 'single look complex images'],
  [/^GRD[FHM]_1S$/, 'ground range detected images'],
  [/^GRD[FHM]_1S-COG$/, 'cloud-optimised ground range detected images'],
  [/^OCN__2S$/, 'ocean wind, wave and surface velocity fields'],
  [/^RAW__0S$/, 'raw radar signals'],
];

/** Describes the content of a product type; null for an unknown type. */
export function contentOfType(type: string | null): string | null {
  if (type === null) return null;
  return (
    lookup(productTypes, type) ??
    radarContent(type) ??
    sentinel3Content(type) ??
    sentinel5pContent(type) ??
    auxiliaryContent(type)
  );
}

function radarContent(type: string): string | null {
  if (type === 'RAW') return 'raw radar signals';
  if (modePhrase(type.slice(0, 2)) === null || type[2] !== '_') return null;
  return radarTypes.find(([pattern]) => pattern.test(type.slice(3)))?.[1] ?? null;
}

/** Returns the level for `LEVEL1`, `1`, `L1C`, `S2MSI2A` and similar texts, such as `Level-1`; null for others. */
export function levelOf(level: string | null): string | null {
  const [, digit] = /^(?:LEVEL-?|L|S2MSI)?([0-3][A-C]?)$/i.exec(level ?? '') ?? [];
  return digit === undefined ? null : `Level-${digit.toUpperCase()}`;
}

/** Returns `VV and VH` for `VV&VH`; null unless there are one or two channels. */
export function polarisationOf(channels: string | null): string | null {
  const [, first, second] = /^([HV]{2})(?:[&,/ ]([HV]{2}))?$/.exec(channels ?? '') ?? [];
  if (first === undefined) return null;
  return second === undefined ? first : `${first} and ${second}`;
}

const timelinesses: Readonly<Record<string, string>> = {
  ...nameTimelinesses,
  'Fast-24h': 'within 24 hours (Fast-24h)',
  'NRT-3h': 'within 3 hours (NRT-3h)',
  'NRT-1h': 'within 1 hour (NRT-1h)',
  'NRT-10m': 'within 10 minutes (NRT-10m)',
  'Off-line': 'offline processing',
  Reprocessing: 'reprocessing',
};

export function timelinessOf(code: string | null): string | null {
  return code === null ? null : lookup(timelinesses, code);
}
