/** Information in the name of a product that follows the naming convention of its mission. */
import { parseDate } from '../../core/terms/dates.ts';

/** Parts of a product name. All texts are defined here, or are codes of a fixed form. */
export interface NamedProduct {
  /** `Sentinel-2A`; without the letter if the name has none. */
  satellite: string;
  instrument: Instrument | null;
  /** True for auxiliary data (orbits, calibration): no observation of the Earth. */
  auxiliary: boolean;
  /** In the spelling of the catalogue: `S2MSI2A`. */
  type: string | null;
  /** `Level-2A`. */
  level: string | null;
  /** Content: `surface reflectance`. */
  content: string | null;
  /** `interferometric wide swath (IW)`. */
  mode: string | null;
  /** `VV and VH`. */
  polarisation: string | null;
  timeliness: string | null;
  /** Start of sensing or of validity, in microseconds since 1970, UTC. */
  startUs: number | null;
  endUs: number | null;
  /** Start of the earlier scene when two are compared; the times above are those of the later one. */
  earlierUs: number | null;
  tile: string | null;
  orbitNumber: number | null;
  relativeOrbitNumber: number | null;
  /** `05.11`. */
  baseline: string | null;
  /** Time of production; of two names of a scene, the later one is newer. */
  producedUs: number | null;
  scene: NamedScene | null;
}

/** Scene of a product. Names with the same key are versions of the same scene and kind of product. */
interface NamedScene {
  /** Prefix shared by all versions. */
  prefix: string;
  /** Text after the prefix that all versions contain; null if the prefix identifies the scene. */
  contains: string | null;
  key: string;
}

/** Parses a name; returns null when it does not follow the convention completely. Linear in its length. */
export type NameParser = (name: string) => NamedProduct | null;

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
  producedUs: null,
  scene: null,
};

/** Returns a parsed name with the given parts; all others are null. */
export function namedProduct(known: KnownParts): NamedProduct {
  return { ...nothing, ...known };
}

/** Groups of the patterns; each pattern has those that its parser uses. A group without a match is empty. */
type Groups = Record<
  | ('prefix' | 'mission' | 'serial' | 'type' | 'level' | 'class' | 'mode' | 'resolution' | 'form')
  | ('polarisation' | 'start' | 'end' | 'made' | 'later' | 'earlier' | 'day' | 'days' | 'instance')
  | ('orbit' | 'tile' | 'path' | 'row' | 'sensor' | 'tier' | 'stream' | 'timeliness' | 'baseline'),
  string
>;

type KnownParts = Partial<NamedProduct> & Pick<NamedProduct, 'satellite'>;

/**
 * Returns a parser of names that match `pattern`. `times` lists groups with dates, which `read` receives in
 * microseconds; a name with an invalid date is not parsed.
 */
export function nameParser<const Times extends readonly (keyof Groups)[]>(
  pattern: RegExp,
  times: Times,
  read: (groups: Groups, timesUs: { [Index in keyof Times]: number }) => KnownParts | null,
): NameParser {
  return (name) => {
    const match = pattern.exec(name);
    if (match === null) return null;
    const groups = Object.fromEntries(
      Object.entries(match.groups ?? {}).map(([group, text]) => [group, text ?? '']),
    ) as Groups;
    const timesUs = times.map((time) => nameTimeUs(groups[time]));
    if (timesUs.includes(null)) return null;
    const known = read(groups, timesUs as { [Index in keyof Times]: number });
    return known === null ? null : namedProduct(known);
  };
}

/** Parses `20150706T105016`, or a day `20150706`, to microseconds. Returns null for an invalid date. */
function nameTimeUs(text: string): number | null {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d))?$/.exec(text) ?? [];
  if (year === undefined) return null;
  const time = hour === undefined ? '' : `T${hour}:${minute}:${second}`;
  return parseDate(`${year}-${month}-${day}${time}`)?.us ?? null;
}

/** Returns the entry of a table for a code of any form; null without one. */
export function lookup(table: Readonly<Record<string, string>>, code: string): string | null {
  return Object.hasOwn(table, code) ? (table[code] ?? null) : null;
}

export interface Instrument {
  /** `MSI`. */
  code: string;
  /** `multispectral imager`. */
  name: string;
}

const instruments: Readonly<Record<string, string>> = {
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

/** Other codes of instruments in records. */
const otherCodes: Readonly<Record<string, string>> = {
  'SAR-C SAR': 'SAR',
  'SAR-C': 'SAR',
  SYNERGY: 'OLCI and SLSTR',
  P4: 'POSEIDON-4',
  OLI_TIRS: 'OLI and TIRS',
  'OLI/TIRS': 'OLI and TIRS',
};

/** Returns the instrument of a code; null for an unknown one. */
export function instrumentOf(code: string): Instrument | null {
  const known = lookup(otherCodes, code) ?? code;
  const name = lookup(instruments, known);
  return name === null ? null : { code: known, name };
}

/** Timeliness by the code in names and attributes. */
export const timelinesses: Readonly<Record<string, string>> = {
  NR: 'near real time (NR)',
  ST: 'short-time-critical (ST)',
  NT: 'non-time-critical (NT)',
};
