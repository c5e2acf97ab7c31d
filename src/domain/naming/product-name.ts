/** What a product's name tells, where it follows the naming convention of its mission. */
import { parseDate } from '../dates.ts';

/** All texts are this program's own words, or codes of a closed form. */
export interface NamedProduct {
  /** `Sentinel-2A`; without its letter where the name has none. */
  satellite: string;
  instrument: Instrument | null;
  /** Orbits, calibrations and the like: no look at the Earth. */
  auxiliary: boolean;
  /** As the catalogue spells it: `S2MSI2A`. */
  type: string | null;
  /** `Level-2A`. */
  level: string | null;
  /** What it holds: `surface reflectance`. */
  content: string | null;
  /** `interferometric wide swath (IW)`. */
  mode: string | null;
  /** `VV and VH`. */
  polarisation: string | null;
  timeliness: string | null;
  /** Of the sensing, or of the validity. Microseconds since 1970, UTC. */
  startUs: number | null;
  endUs: number | null;
  /** Of the earlier one, where two scenes are compared; the times above are those of the later one. */
  earlierUs: number | null;
  tile: string | null;
  orbitNumber: number | null;
  relativeOrbitNumber: number | null;
  /** `05.11`. */
  baseline: string | null;
  /** When it was made; of two names of a scene the later one is newer. */
  madeUs: number | null;
  scene: NamedScene | null;
}

/** Names with the same key show the same scene in the same kind of product, processed at other times. */
interface NamedScene {
  /** What all of them begin with. */
  prefix: string;
  /** What all of them hold behind it; null where the prefix tells enough. */
  contains: string | null;
  key: string;
}

/** Reads a name; null when it does not follow the convention as a whole. Linear in its length. */
export type NameReader = (name: string) => NamedProduct | null;

const nothing: Omit<NamedProduct, 'satellite'> = {
  instrument: null,
  auxiliary: false,
  type: null,
  level: null,
  content: null,
  mode: null,
  polarisation: null,
  timeliness: null,
  startUs: null,
  endUs: null,
  earlierUs: null,
  tile: null,
  orbitNumber: null,
  relativeOrbitNumber: null,
  baseline: null,
  madeUs: null,
  scene: null,
};

/** A name that tells no more than what is given. */
export function namedProduct(
  known: Partial<NamedProduct> & Pick<NamedProduct, 'satellite'>,
): NamedProduct {
  return { ...nothing, ...known };
}

/** A match whose named groups are texts; empty for those that took no part. */
export function groupsOf<Name extends string>(
  match: RegExpExecArray,
  ...names: Name[]
): Record<Name, string> {
  const groups = names.map((name) => [name, match.groups?.[name] ?? '']);
  return Object.fromEntries(groups) as Record<Name, string>;
}

/** `20150706T105016`, or a day `20150706`: microseconds. Null for a date that does not exist. */
function nameTimeUs(text: string): number | null {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d))?$/.exec(text) ?? [];
  if (year === undefined) return null;
  const time = hour === undefined ? '' : `T${hour}:${minute}:${second}`;
  return parseDate(`${year}-${month}-${day}${time}`)?.us ?? null;
}

/** All of a name's times; null when one of them does not exist. */
export function nameTimesUs<Times extends readonly string[]>(
  ...texts: Times
): { [Index in keyof Times]: number } | null {
  const times = texts.map(nameTimeUs);
  if (times.includes(null)) return null;
  return times as unknown as { [Index in keyof Times]: number };
}

export interface Instrument {
  /** `MSI`. */
  code: string;
  /** `multispectral imager`. */
  words: string;
}

const words: Readonly<Record<string, string>> = {
  SAR: 'C-band synthetic-aperture radar',
  MSI: 'multispectral imager',
  OLCI: 'ocean and land colour instrument',
  SLSTR: 'sea and land surface temperature radiometer',
  SRAL: 'synthetic-aperture radar altimeter',
  MWR: 'microwave radiometer',
  TROPOMI: 'ultraviolet to shortwave-infrared spectrometer',
  'POSEIDON-4': 'radar altimeter',
  TM: 'thematic mapper',
  'ETM+': 'enhanced thematic mapper',
  OLI: 'operational land imager',
  TIRS: 'thermal infrared sensor',
  'OLI and TIRS': 'operational land imager and thermal infrared sensor',
  'OLCI and SLSTR': 'imagers of colour and temperature',
};

/** What records call by more than one name. */
const otherCodes: Readonly<Record<string, string>> = {
  'SAR-C SAR': 'SAR',
  'SAR-C': 'SAR',
  SYNERGY: 'OLCI and SLSTR',
  P4: 'POSEIDON-4',
  OLI_TIRS: 'OLI and TIRS',
  'OLI/TIRS': 'OLI and TIRS',
};

/** The instrument that a code stands for; null for an unknown one. */
export function instrumentOf(code: string): Instrument | null {
  const known = Object.hasOwn(otherCodes, code) ? (otherCodes[code] ?? code) : code;
  const found = Object.hasOwn(words, known) ? words[known] : undefined;
  return found === undefined ? null : { code: known, words: found };
}

const timelinessWords: Readonly<Record<string, string>> = {
  NR: 'near real time (NR)',
  ST: 'short-time-critical (ST)',
  NT: 'non-time-critical (NT)',
};

/** For a code as names and attributes spell it: `NR`; null for an unknown one. */
export function timelinessOfCode(code: string): string | null {
  return Object.hasOwn(timelinessWords, code) ? (timelinessWords[code] ?? null) : null;
}
