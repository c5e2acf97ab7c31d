/**
 * Parses product names by the naming convention of the mission: the Sentinels (the missions' product specifications;
 * recorded products), the auxiliary files of Sentinel-1, 2 and 3 (ESA-EOPG-EOPGC-TN-37, Copernicus Sentinel Auxiliary
 * Data Portfolio), and Landsat.
 */
import { parseDate } from '../core/terms/dates.ts';

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
      const raw = kind === 'RAW' ? rawClasses[rest.class ?? ''] : undefined;
      const usual = `${resolutions[resolution] ?? ''}${contents[kind] ?? kind}`;
      const level = digit === 'A' ? 'Level-1' : `Level-${digit}`;
      const derived = { type: 'CARD-BS', level: 'Level-2' };
      return {
        instrument: 'SAR',
        content: raw ?? `${isCog ? 'cloud-optimised ' : ''}${usual}`,
        mode: modes[mode] ?? `stripmap (${mode})`,
        polarisation: polarisations[polarisation] ?? polarisation,
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
      const content = sentinel3Contents[type];
      const instrument = sentinel3Instruments[type.slice(0, 2)] ?? null;
      return content === undefined ? null : { content, instrument };
    },
  },
  {
    form: /^S(?<mission>5P)_(?:NRTI|OFFL|RPRO)_(?<type>L(?<level>1B|2_)_[A-Z0-9_]{6})_(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_(?<orbit>\d{5})_\d\d_\d{6}_\d{8}T\d{6}(?:\.nc)?$/,
    read: ({ type = '' }) => {
      const [, band] = /^L1B_RA_BD([1-8])$/.exec(type) ?? [];
      const content = band ? `Earth radiance in band ${band}` : sentinel5pContents[type];
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
      instrument: landsatInstruments[sensor] ?? (Number(landsat) < 8 ? 'TM' : 'TIRS'),
      level: `Level-${product[1]}`,
      content: landsatContents[product] ?? null,
      tile: `path ${Number(path)}, row ${Number(row)}`,
    }),
  },
];

function readAuxiliary({ type = '' }: Groups): Partial<NamedProduct> | null {
  const content = auxiliaryContents[type];
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

const modes: Readonly<Record<string, string>> = {
  IW: 'interferometric wide swath (IW)',
  EW: 'extra wide swath (EW)',
  WV: 'wave (WV)',
};

const polarisations: Readonly<Record<string, string>> = {
  SH: 'HH',
  SV: 'VV',
  DH: 'HH and HV',
  DV: 'VV and VH',
};

const resolutions: Readonly<Record<string, string>> = {
  F: 'full-resolution ',
  H: 'high-resolution ',
  M: 'medium-resolution ',
};

const contents: Readonly<Record<string, string>> = {
  RAW: 'raw radar signals',
  SLC: 'single look complex images',
  GRD: 'ground range detected images',
  OCN: 'ocean wind, wave and surface velocity fields',
  ETA: 'extended timing annotations',
};

/** Classes of raw data except the standard one. */
const rawClasses: Readonly<Record<string, string>> = {
  A: 'annotations of raw radar signals',
  C: 'calibration measurements of the radar',
  N: 'noise measurements of the radar',
};

const sentinel3Instruments: Readonly<Record<string, string>> = {
  OL: 'OLCI',
  SL: 'SLSTR',
  SR: 'SRAL',
  MW: 'MWR',
  SY: 'OLCI and SLSTR',
};

const sentinel3Contents: Readonly<Record<string, string>> = {
  OL_0_EFR___: 'full-resolution raw measurements',
  OL_1_EFR___: 'full-resolution top-of-atmosphere radiance',
  OL_1_ERR___: 'reduced-resolution top-of-atmosphere radiance',
  OL_2_LFR___: 'full-resolution land and vegetation parameters',
  OL_2_LRR___: 'reduced-resolution land and vegetation parameters',
  OL_2_WFR___: 'full-resolution ocean colour and water parameters',
  OL_2_WRR___: 'reduced-resolution ocean colour and water parameters',
  SL_0_SLT___: 'raw measurements',
  SL_1_RBT___: 'top-of-atmosphere radiance and brightness temperature',
  SL_2_LST___: 'land surface temperature',
  SL_2_WST___: 'sea surface temperature',
  SL_2_FRP___: 'fire radiative power',
  SL_2_AOD___: 'aerosol optical depth',
  SR_0_SRA___: 'raw radar echoes',
  SR_1_SRA___: 'calibrated radar echoes',
  SR_1_SRA_A_: 'aligned radar echoes',
  SR_1_SRA_BS: 'stacked radar echoes',
  SR_2_LAN___: 'surface heights over land',
  SR_2_LAN_HY: 'water levels of rivers and lakes',
  SR_2_LAN_SI: 'surface heights of sea ice',
  SR_2_LAN_LI: 'surface heights of land ice',
  SR_2_WAT___: 'sea surface heights, wave heights and wind speeds',
  MW_0_MWR___: 'raw measurements',
  MW_1_MWR___: 'calibrated brightness temperature',
  SY_2_SYN___: 'surface reflectance and aerosol',
  SY_2_AOD___: 'aerosol optical depth',
  SY_2_VGP___: 'top-of-atmosphere reflectance for vegetation',
  SY_2_VG1___: 'surface reflectance of one day for vegetation',
  SY_2_V10___: 'surface reflectance of ten days for vegetation',
};

const sentinel5pContents: Readonly<Record<string, string>> = {
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

/** Content of auxiliary files by type. Names of other types are not recognized. */
const auxiliaryContents: Readonly<Record<string, string>> = {
  AUX_CAL: 'calibration parameters of the radar',
  AUX_INS: 'instrument parameters of the radar',
  AUX_PP1: 'parameters of the Level-1 processor',
  AUX_PP2: 'parameters of the Level-2 processor',
  AUX_SCS: 'simulated cross spectra of ocean waves',
  AUX_SCF: 'processing parameters',
  AUX_ML2: 'machine learning models for Level-2 processing',
  AUX_ICE: 'sea ice concentrations',
  AUX_WAV: 'ocean wave forecasts',
  AUX_WND: 'wind forecasts',
  AUX_TEC: 'ionospheric electron content',
  AUX_TRO: 'tropospheric delays',
  AUX_ITC: 'processing parameters',
  AUX_POEORB: 'precise orbit ephemerides',
  AUX_RESORB: 'restituted orbit ephemerides',
  AUX_PREORB: 'predicted orbit ephemerides',
  AUX_MOEORB: 'medium-accuracy orbit ephemerides',
  AUX_RESATT: 'restituted attitudes',
  AUX_PROQUA: 'attitude quaternions',
  AUX_GNSSRD: 'raw data of the satellite navigation receiver',
  AUX_UT1UTC: 'differences between astronomical and civil time',
};

/** Product types of the conventions, except those of Sentinel-1. */
export const typesInNames: readonly string[] = [
  ...['S2MSI1C', 'S2MSI2A', 'CARD-BS', 'CARD-COH6', 'CARD-COH12'],
  ...[sentinel3Contents, sentinel5pContents, auxiliaryContents].flatMap(Object.keys),
];

const landsatInstruments: Readonly<Record<string, string>> = {
  C: 'OLI and TIRS',
  O: 'OLI',
  E: 'ETM+',
};

const landsatContents: Readonly<Record<string, string>> = {
  L1TP: 'terrain-corrected images',
  L1GT: 'systematically terrain-corrected images',
  L1GS: 'systematically corrected images',
  L2SP: 'surface reflectance and surface temperature',
  L2SR: 'surface reflectance',
};
