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
  madeUs: null,
  scene: null,
};

/** A name that tells no more than what is given. */
export function namedProduct(known: KnownParts): NamedProduct {
  return { ...nothing, ...known };
}

/** The groups of the patterns; each has those that its reader takes. One that took no part is empty. */
type Groups = Record<
  | ('prefix' | 'mission' | 'serial' | 'type' | 'level' | 'class' | 'mode' | 'resolution' | 'form')
  | ('polarisation' | 'start' | 'end' | 'made' | 'later' | 'earlier' | 'day' | 'days' | 'instance')
  | ('orbit' | 'tile' | 'path' | 'row' | 'sensor' | 'tier' | 'stream' | 'timeliness' | 'baseline'),
  string
>;

type KnownParts = Partial<NamedProduct> & Pick<NamedProduct, 'satellite'>;

/**
 * A reader of the names that match `pattern`. `times` are groups with dates, which `read` gets in microseconds:
 * a name with a date that does not exist is none.
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

/** `20150706T105016`, or a day `20150706`: microseconds. Null for a date that does not exist. */
function nameTimeUs(text: string): number | null {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d))?$/.exec(text) ?? [];
  if (year === undefined) return null;
  const time = hour === undefined ? '' : `T${hour}:${minute}:${second}`;
  return parseDate(`${year}-${month}-${day}${time}`)?.us ?? null;
}

/** What a table has for a code of any form; null where it has nothing. */
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
  const known = lookup(otherCodes, code) ?? code;
  const name = lookup(instruments, known);
  return name === null ? null : { code: known, name };
}

/** By the code as names and attributes spell it. */
export const timelinesses: Readonly<Record<string, string>> = {
  NR: 'near real time (NR)',
  ST: 'short-time-critical (ST)',
  NT: 'non-time-critical (NT)',
};
