/**
 * Parses product names by the naming convention of the mission: the Sentinels (the missions' product specifications;
 * recorded products), the auxiliary files of Sentinel-1, 2 and 3 (ESA-EOPG-EOPGC-TN-37, Copernicus Sentinel Auxiliary
 * Data Portfolio), and Landsat.
 */
import { parseDate } from '../core/terms/dates.ts';
import codes from './product-contents.json' with { type: 'json' };

/** Parts of a product name; null if it does not have them. All texts are defined here, or are codes of a fixed form. */
export interface NamedProduct {
  /** `Sentinel-2A`; without the letter if the name has none. */
  satellite: string;
  /** `MSI`. */
  instrument: string | null;
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
  /** Start of sensing or of validity, in microseconds since 1970, UTC. */
  startUs: number | null;
  endUs: number | null;
  tile: string | null;
  orbitNumber: number | null;
  relativeOrbitNumber: number | null;
}

const { tables } = codes;

/** Returns the meaning of a code; undefined for an unknown one. */
const meaning = (table: keyof typeof tables, code: string): string | undefined =>
  (tables[table] as Readonly<Record<string, string>>)[code];

/** Groups of a pattern; one without a match is empty. */
type Groups = Readonly<Record<string, string | undefined>>;

/**
 * The groups `mission` and `serial` are the satellite; `start`, `end`, `orbit`, `relative`, `tile`, `type` and `level` are
 * read as they are. `read` adds or replaces parts; null: no product of the convention.
 */
interface Convention {
  form: RegExp;
  read(groups: Groups): Partial<NamedProduct> | null;
}

/** The most frequent first. */
const conventions: readonly Convention[] = [
  // Sentinel-1: slices of data takes, and products derived from them by CloudFerro.
  {
    form: /^S(?<mission>1)(?<serial>[A-Z])_(?<mode>IW|EW|WV|EN|S[1-6]|N[1-6])_(?<kind>RAW|SLC|GRD|OCN|ETA)(?<resolution>[FHM_])_(?<digit>[012A])(?<class>[SACNX])(?<polarisation>SH|SV|DH|DV|HH|HV|VV|VH)_(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_(?<orbit>\d{6})_[0-9A-F]{6}_[0-9A-F]{4}(?<form>_COG|_CARD_BS)?(?:\.SAFE)?$/,
    read: ({ mode = '', kind = '', resolution = '', polarisation = '', form, digit, ...rest }) => {
      const isCog = form === '_COG';
      const type = `${mode}_${kind}${resolution}_${digit}${rest.class}${isCog ? '-COG' : ''}`;
      const raw = kind === 'RAW' ? meaning('rawClasses', rest.class ?? '') : undefined;
      const usual = `${meaning('resolutions', resolution) ?? ''}${meaning('contents', kind) ?? kind}`;
      const level = digit === 'A' ? 'Level-1' : `Level-${digit}`;
      const derived = { type: 'CARD-BS', level: 'Level-2' };
      return {
        instrument: 'SAR',
        content: raw ?? `${isCog ? 'cloud-optimised ' : ''}${usual}`,
        mode: meaning('modes', mode) ?? `stripmap (${mode})`,
        polarisation: meaning('polarisations', polarisation) ?? polarisation,
        ...(form === '_CARD_BS'
          ? { ...derived, content: 'terrain-corrected radar backscatter' }
          : { type, level }),
      };
    },
  },
  // Coherence of two slices, by CloudFerro; the later slice comes first.
  {
    form: /^S1[A-Z]_(?<start>\d{8}T\d{6})__S(?<mission>1)(?<serial>[A-Z])_\d{8}T\d{6}_\d{8}T\d{6}_(?<type>CARD-COH(?<days>6|12))$/,
    read: ({ days }) => ({
      instrument: 'SAR',
      level: 'Level-2',
      content: `interferometric coherence over ${days} days`,
    }),
  },
  {
    form: /^S(?<mission>2)(?<serial>[A-Z])_MSIL(?<level>1C|2A)_(?<start>\d{8}T\d{6})_N\d{4}_R(?<relative>[01]\d\d)_T(?<tile>\d{2}[A-Z]{3})_\d{8}T\d{6}(?:\.SAFE)?$/,
    read: ({ level }) => ({
      instrument: 'MSI',
      type: `S2MSI${level}`,
      content: level === '1C' ? 'top-of-atmosphere reflectance' : 'surface reflectance',
    }),
  },
  {
    form: /^S(?<mission>3)(?<serial>[A-Z])_(?<type>[A-Z]{2}_(?<level>[0-2_])_[A-Z0-9_]{6})_(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_\d{8}T\d{6}_(?:\d{4}_\d{3}_(?<relative>\d{3})_(?:\d{4}|____)|[A-Z_]{17})_[A-Z]{2}[A-Z0-9]_[OFDR_]_(?:NR|ST|NT)_\d{3}(?:\.SEN3)?$/,
    read: ({ type = '' }) => {
      const content = meaning('sentinel3Contents', type);
      const instrument = meaning('sentinel3Instruments', type.slice(0, 2)) ?? null;
      return content === undefined ? null : { content, instrument };
    },
  },
  {
    form: /^S(?<mission>5P)_(?:NRTI|OFFL|RPRO)_(?<type>L(?<level>1B|2_)_[A-Z0-9_]{6})_(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_(?<orbit>\d{5})_\d\d_\d{6}_\d{8}T\d{6}(?:\.nc)?$/,
    read: ({ type = '' }) => {
      const [, band] = /^L1B_RA_BD([1-8])$/.exec(type) ?? [];
      const content = band ? `Earth radiance in band ${band}` : meaning('sentinel5pContents', type);
      return content === undefined ? null : { content, instrument: 'TROPOMI' };
    },
  },
  // Auxiliary files valid from a given time until they are replaced by a newer one of the same kind.
  {
    form: /^S(?<mission>1)(?<serial>[A-Z_])_(?<type>AUX_[A-Z0-9]{3})_V(?<start>\d{8}T\d{6})_G\d{8}T\d{6}(?:\.SAFE)?$/,
    read: readAuxiliary,
  },
  // Operational auxiliary files.
  {
    form: /^S(?<mission>[123])(?<serial>[A-Z_])_OPER_(?<type>AUX_[A-Z0-9]{6})_(?:OPOD|POD_|PDMC|MPC_|ADG_)_\d{8}T\d{6}_V(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})(?:\.EOF|\.TGZ)?$/,
    read: readAuxiliary,
  },
  {
    form: /^S(?<mission>6)(?<serial>[A-Z])_P4_(?<level>1A|1B|2_)_(?<mode>HR|LR)_(?:STD|RED|___)___?(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_\d{8}T\d{6}_\d{4}_\d{3}_(?<relative>\d{3})_\d{3}_EUM__(?:OPE|REP|VAL)_(?:NR|ST|NT)_F\d\d(?:\.SEN6)?$/,
    read: ({ level, mode }) => ({
      instrument: 'POSEIDON-4',
      content: level === '2_' ? 'sea surface heights' : 'calibrated radar echoes',
      mode: mode === 'HR' ? 'high resolution (HR)' : 'low resolution (LR)',
    }),
  },
  // The name contains only the day, which is not a time of sensing.
  {
    form: /^L(?<sensor>[CETO])0(?<landsat>[4-9])_(?<product>L1TP|L1GT|L1GS|L2SP|L2SR)_(?<path>[012]\d\d)(?<row>[012]\d\d)_\d{8}_\d{8}_0[12]_(?:T1|T2|RT)(?:\.tar)?$/,
    read: ({ sensor = '', landsat, product = '', path, row }) => ({
      satellite: `Landsat-${landsat}`,
      instrument: meaning('landsatInstruments', sensor) ?? (Number(landsat) < 8 ? 'TM' : 'TIRS'),
      level: `Level-${product[1]}`,
      content: meaning('landsatContents', product) ?? null,
      tile: `path ${Number(path)}, row ${Number(row)}`,
    }),
  },
];

function readAuxiliary({ type = '' }: Groups): Partial<NamedProduct> | null {
  const content = meaning('auxiliaryContents', type);
  return content === undefined ? null : { content, auxiliary: true };
}

/** Longer than the longest name of any convention. */
const longest = 110;

/** Parses a product name; returns null when it follows no known convention completely. Linear in its length. */
export function parseProductName(name: string): NamedProduct | null {
  if (name.length > longest) return null;
  for (const { form, read } of conventions) {
    const groups = form.exec(name)?.groups;
    const parts = groups && read(groups);
    if (!groups || !parts) continue;
    const [startUs, endUs] = [timeUs(groups.start), timeUs(groups.end)];
    if (startUs === undefined || endUs === undefined) continue;
    const { mission, serial = '', level, orbit, relative } = groups;
    return {
      satellite: `Sentinel-${mission}${serial.replace('_', '')}`,
      auxiliary: false,
      type: groups.type ?? null,
      level: level === undefined ? null : `Level-${level.replace('_', '')}`,
      ...{ instrument: null, content: null, mode: null, polarisation: null, startUs, endUs },
      tile: groups.tile ?? null,
      orbitNumber: orbit === undefined ? null : Number(orbit),
      relativeOrbitNumber: relative === undefined ? null : Number(relative),
      ...parts,
    };
  }
  return null;
}

/** Parses `20150706T105016` to microseconds. Returns null without a time, and undefined for an invalid one. */
function timeUs(text: string | undefined): number | null | undefined {
  if (text === undefined) return null;
  const [, date, ...time] = /^(\d{8})T(\d\d)(\d\d)(\d\d)$/.exec(text) ?? [];
  return parseDate(`${date?.replace(/(..)(..)$/, '-$1-$2')}T${time.join(':')}`)?.us;
}

/** Product types of the conventions, except those of Sentinel-1. */
export const typesInNames: readonly string[] = [
  ...['S2MSI1C', 'S2MSI2A', 'CARD-BS', 'CARD-COH6', 'CARD-COH12'],
  ...[tables.sentinel3Contents, tables.sentinel5pContents, tables.auxiliaryContents].flatMap(
    Object.keys,
  ),
];
