/**
 * Parses product names by the naming convention of the mission: the Sentinels (the missions' product specifications;
 * recorded products), the auxiliary files of Sentinel-1, 2 and 3 (ESA-EOPG-EOPGC-TN-37, Copernicus Sentinel Auxiliary
 * Data Portfolio), and Landsat.
 */
import {
  instrumentOf,
  lookup,
  type NamedProduct,
  type NameParser,
  nameParser,
  timelinesses,
} from './product-name.ts';

/** Parsers by convention, the most frequent first. */
export const sentinelNames: readonly NameParser[] = [
  // Sentinel-1: slices of data takes, and products derived from them by CloudFerro.
  nameParser(
    /^(?<prefix>S1(?<serial>[A-Z])_(?<mode>IW|EW|WV|EN|S[1-6]|N[1-6])_(?<type>RAW|SLC|GRD|OCN|ETA)(?<resolution>[FHM_])_(?<level>[012A])(?<class>[SACNX])(?<polarisation>SH|SV|DH|DV|HH|HV|VV|VH)_(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_(?<orbit>\d{6})_[0-9A-F]{6}_)[0-9A-F]{4}(?<form>_COG|_CARD_BS)?(?:\.SAFE)?$/,
    ['start', 'end'],
    ({ prefix, serial, mode, level, orbit, polarisation, form, ...of }, [startUs, endUs]) => ({
      satellite: `Sentinel-1${serial}`,
      instrument: instrumentOf('SAR'),
      type: sliceType(`${mode}_${of.type}${of.resolution}_${level}${of.class}`, form),
      level: sliceLevel(level, form),
      content: sliceContent(of.type, of.class, of.resolution, form),
      mode: modePhrase(mode),
      polarisation: polarisations[polarisation] ?? polarisation,
      startUs,
      endUs,
      orbitNumber: Number(orbit),
      // The last four characters change with every processing. A product in another format is not a
      // new version.
      scene: { prefix, contains: null, key: `${prefix}*${form}` },
    }),
  ),
  // Coherence of two slices, by CloudFerro; the later slice comes first.
  nameParser(
    /^S1[A-Z]_(?<later>\d{8}T\d{6})__S1(?<serial>[A-Z])_(?<earlier>\d{8}T\d{6})_(?:\d{8}T\d{6})_CARD-COH(?<days>6|12)$/,
    ['later', 'earlier'],
    ({ serial, days }, [startUs, earlierUs]) => ({
      satellite: `Sentinel-1${serial}`,
      instrument: instrumentOf('SAR'),
      type: `CARD-COH${days}`,
      level: 'Level-2',
      content: `interferometric coherence over ${days} days`,
      startUs,
      earlierUs,
    }),
  ),
  nameParser(
    /^(?<prefix>S2(?<serial>[A-Z])_MSI(?<level>L1C|L2A)_(?<start>\d{8}T\d{6})_)N(?<baseline>\d{4})_R(?<orbit>[01]\d\d)_T(?<tile>\d{2}[A-Z]{3})_(?<made>\d{8}T\d{6})(?:\.SAFE)?$/,
    ['start', 'made'],
    ({ prefix, serial, level, baseline, orbit, tile }, [startUs, producedUs]) => {
      const square = `_R${orbit}_T${tile}_`;
      return {
        satellite: `Sentinel-2${serial}`,
        instrument: instrumentOf('MSI'),
        type: `S2MSI${level.slice(1)}`,
        level: `Level-${level.slice(1)}`,
        content: level === 'L1C' ? 'top-of-atmosphere reflectance' : 'surface reflectance',
        startUs,
        tile,
        relativeOrbitNumber: Number(orbit),
        baseline: `${baseline.slice(0, 2)}.${baseline.slice(2)}`,
        // The last time is that of the processing; it distinguishes products of one tile and data
        // take.
        producedUs,
        scene: { prefix, contains: square, key: `${prefix}*${square}` },
      };
    },
  ),
  nameParser(
    /^(?<prefix>S3(?<serial>[A-Z])_(?<type>[A-Z]{2}_[0-2_]_[A-Z0-9_]{6})_(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_)(?<made>\d{8}T\d{6})_(?<instance>\d{4}_\d{3}_(?<orbit>\d{3})_(?:\d{4}|____)|GLOBAL_{11}|EUROPE_{11}|AFRICA_{11}|ASIA_{13}|AUSTRALASIA_{6}|(?:NORTH|SOUTH)_AMERICA_{4}|CENTRAL_AMERICA__|(?:NORTH|WEST)_ASIA_{7,8}|_{17})_[A-Z]{2}[A-Z0-9]_[OFDR_]_(?<timeliness>NR|ST|NT)_(?<baseline>\d{3})(?:\.SEN3)?$/,
    ['start', 'end', 'made'],
    ({ prefix, serial, type, instance, orbit, ...of }, [startUs, endUs, producedUs]) => {
      const content = sentinel3Content(type);
      if (content === null) return null;
      return {
        satellite: `Sentinel-3${serial}`,
        instrument: instrumentOf(sentinel3Instruments[type.slice(0, 2)] ?? ''),
        type,
        level: `Level-${type[3]}`,
        content,
        timeliness: lookup(timelinesses, of.timeliness),
        startUs,
        endUs,
        relativeOrbitNumber: orbit === '' ? null : Number(orbit),
        baseline: of.baseline,
        producedUs,
        // Near real time and later products of a frame are versions of each other.
        scene: { prefix, contains: `_${instance}_`, key: `${prefix}*_${instance}` },
      };
    },
  ),
  nameParser(
    /^(?<prefix>S5P_(?<stream>NRTI|OFFL|RPRO)_(?<type>L1B_[A-Z0-9_]{6}|L2__[A-Z0-9_]{6})_(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_(?<orbit>\d{5})_)\d\d_(?<baseline>\d{6})_(?<made>\d{8}T\d{6})(?:\.nc)?$/,
    ['start', 'end', 'made'],
    ({ prefix, stream, type, orbit, baseline }, [startUs, endUs, producedUs]) => {
      const content = sentinel5pContent(type);
      if (content === null) return null;
      return {
        satellite: 'Sentinel-5P',
        instrument: instrumentOf('TROPOMI'),
        type,
        level: type.startsWith('L2') ? 'Level-2' : 'Level-1B',
        content,
        timeliness: streams[stream] ?? null,
        startUs,
        endUs,
        orbitNumber: Number(orbit),
        baseline: baseline.replaceAll(/(..)(?=.)/g, '$1.'),
        producedUs,
        // A reprocessed product starts with another stream, so this prefix does not find it.
        scene: { prefix, contains: null, key: prefix },
      };
    },
  ),
  // Auxiliary files valid from a given time until they are replaced by a newer one of the same
  // kind.
  nameParser(
    /^(?<prefix>S1(?<serial>[A-Z_])_(?<type>AUX_[A-Z0-9]{3})_V(?<start>\d{8}T\d{6})_G)(?<made>\d{8}T\d{6})(?:\.SAFE)?$/,
    ['start', 'made'],
    ({ prefix, serial, type }, [startUs, producedUs]) => {
      const content = auxiliaryContent(type);
      if (content === null) return null;
      const scene = { prefix, contains: null, key: prefix };
      return {
        satellite: satelliteOf('1', serial),
        auxiliary: true,
        type,
        content,
        startUs,
        producedUs,
        scene,
      };
    },
  ),
  // Operational auxiliary files. The variable part comes before the validity: there is no prefix to
  // search by.
  nameParser(
    /^S(?<mission>[123])(?<serial>[A-Z_])_OPER_(?<type>AUX_[A-Z0-9]{6})_(?:OPOD|POD_|PDMC|MPC_|ADG_)_(?<made>\d{8}T\d{6})_V(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})(?:\.EOF|\.TGZ)?$/,
    ['start', 'end', 'made'],
    ({ mission, serial, type }, [startUs, endUs, producedUs]) => {
      const content = auxiliaryContent(type);
      if (content === null) return null;
      return {
        satellite: satelliteOf(mission, serial),
        auxiliary: true,
        type,
        content,
        startUs,
        endUs,
        producedUs,
      };
    },
  ),
  nameParser(
    /^(?<prefix>S6(?<serial>[A-Z])_P4_(?<level>1A|1B|2_)_(?<mode>HR|LR)_(?:STD|RED|___)___?(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_)(?<made>\d{8}T\d{6})_\d{4}_\d{3}_(?<orbit>\d{3})_\d{3}_EUM__(?:OPE|REP|VAL)_(?<timeliness>NR|ST|NT)_(?<baseline>F\d\d)(?:\.SEN6)?$/,
    ['start', 'end', 'made'],
    (
      { prefix, serial, level, mode, orbit, timeliness, baseline },
      [startUs, endUs, producedUs],
    ) => ({
      satellite: `Sentinel-6${serial}`,
      instrument: instrumentOf('POSEIDON-4'),
      level: `Level-${level.replace('_', '')}`,
      content: level === '2_' ? 'sea surface heights' : 'calibrated radar echoes',
      mode: mode === 'HR' ? 'high resolution (HR)' : 'low resolution (LR)',
      timeliness: lookup(timelinesses, timeliness),
      startUs,
      endUs,
      relativeOrbitNumber: Number(orbit),
      baseline,
      producedUs,
      scene: { prefix, contains: null, key: prefix },
    }),
  ),
];

function satelliteOf(mission: string, serial: string): string {
  return `Sentinel-${mission}${serial === '_' ? '' : serial}`;
}

const modes: Readonly<Record<string, string>> = {
  IW: 'interferometric wide swath (IW)',
  EW: 'extra wide swath (EW)',
  WV: 'wave (WV)',
};

/** Returns the name of a mode of Sentinel-1 (`IW`, `S3`); null for an unknown one. */
export function modePhrase(code: string): string | null {
  return lookup(modes, code) ?? (/^(?:SM|EN|[SN][1-6])$/.test(code) ? `stripmap (${code})` : null);
}

const polarisations: Readonly<Record<string, string>> = {
  SH: 'HH',
  SV: 'VV',
  DH: 'HH and HV',
  DV: 'VV and VH',
};

function sliceLevel(digit: string, form: string): string {
  if (form === '_CARD_BS') return 'Level-2';
  return digit === 'A' ? 'Level-1' : `Level-${digit}`;
}

/** Returns the type as in the name after the satellite, with the format: `IW_GRDH_1S-COG`. */
function sliceType(code: string, form: string): string {
  if (form === '_CARD_BS') return 'CARD-BS';
  return `${code}${form === '_COG' ? '-COG' : ''}`;
}

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

function sliceContent(type: string, kind: string, resolution: string, form: string): string {
  if (form === '_CARD_BS') return 'terrain-corrected radar backscatter';
  const raw = type === 'RAW' ? lookup(rawClasses, kind) : null;
  if (raw !== null) return raw;
  const content = `${resolutions[resolution] ?? ''}${contents[type] ?? type}`;
  return form === '_COG' ? `cloud-optimised ${content}` : content;
}

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

/** Returns the content of products of a type such as `OL_1_EFR___`; null for an unknown one. */
export function sentinel3Content(type: string): string | null {
  return lookup(sentinel3Contents, type);
}

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

const streams: Readonly<Record<string, string>> = {
  NRTI: 'near real time (NRTI)',
  OFFL: 'offline processing (OFFL)',
  RPRO: 'reprocessing (RPRO)',
};

/** Returns the content of products of a type such as `L2__NO2___`; null for an unknown type. */
export function sentinel5pContent(type: string): string | null {
  const [, band] = /^L1B_RA_BD([1-8])$/.exec(type) ?? [];
  return band === undefined ? lookup(sentinel5pContents, type) : `Earth radiance in band ${band}`;
}

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

/** Returns the content of auxiliary files of a type; null for an unknown type. */
export function auxiliaryContent(type: string): string | null {
  return lookup(auxiliaryContents, type);
}

/** Product types of the conventions, except those of Sentinel-1. */
export const typesInNames: readonly string[] = [
  ...['S2MSI1C', 'S2MSI2A', 'CARD-BS', 'CARD-COH6', 'CARD-COH12'],
  ...[sentinel3Contents, sentinel5pContents, auxiliaryContents].flatMap(Object.keys),
];

const landsatName = nameParser(
  /^(?<prefix>L(?<sensor>[CETO])0(?<mission>[4-9])_(?<level>L1TP|L1GT|L1GS|L2SP|L2SR)_(?<path>[012]\d\d)(?<row>[012]\d\d)_(?<day>\d{8})_)(?<made>\d{8})_(?<collection>0[12])_(?<tier>T1|T2|RT)(?:\.tar)?$/,
  ['day', 'made'],
  // The name contains only the day, which is not a time of sensing.
  ({ prefix, sensor, mission, level, path, row, tier }, [, producedUs]) => ({
    satellite: `Landsat-${mission}`,
    instrument: landsatInstrument(sensor, mission),
    level: `Level-${level[1]}`,
    content: landsatContents[level] ?? null,
    timeliness: tier === 'RT' ? 'real time (RT)' : null,
    tile: `path ${Number(path)}, row ${Number(row)}`,
    producedUs,
    scene: { prefix, contains: null, key: prefix },
  }),
);

/** Longer than the longest name of any convention. */
const longest = 110;

/** Parses a product name; returns null when it follows no known convention completely. Linear in its length. */
export function parseProductName(name: string): NamedProduct | null {
  if (name.length > longest) return null;
  for (const read of [...sentinelNames, landsatName]) {
    const found = read(name);
    if (found !== null) return found;
  }
  return null;
}

const landsatContents: Readonly<Record<string, string>> = {
  L1TP: 'terrain-corrected images',
  L1GT: 'systematically terrain-corrected images',
  L1GS: 'systematically corrected images',
  L2SP: 'surface reflectance and surface temperature',
  L2SR: 'surface reflectance',
};

function landsatInstrument(sensor: string, mission: string) {
  if (sensor === 'C') return instrumentOf('OLI and TIRS');
  if (sensor === 'O') return instrumentOf('OLI');
  if (sensor === 'E') return instrumentOf('ETM+');
  return instrumentOf(Number(mission) < 8 ? 'TM' : 'TIRS');
}
