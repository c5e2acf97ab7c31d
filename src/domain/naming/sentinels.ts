/** Reads names of Sentinel-1 (the mission's product specification; recorded products). */
import {
  groupsOf,
  instrumentOf,
  type NameReader,
  namedProduct,
  nameTimesUs,
  timelinessOfCode,
} from './product-name.ts';

const slice =
  /^(?<stem>S1(?<serial>[A-D])_(?<mode>IW|EW|WV|EN|S[1-6]|N[1-6])_(?<type>RAW|SLC|GRD|OCN|ETA)(?<resolution>[FHM_])_(?<level>[012A])(?<class>[SACNX])(?<polarisation>SH|SV|DH|DV|HH|HV|VV|VH)_(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_(?<orbit>\d{6})_[0-9A-F]{6}_)[0-9A-F]{4}(?<form>_COG|_CARD_BS)?(?:\.SAFE)?$/;

/** Made by CloudFerro of two slices; the later one comes first. */
const coherence =
  /^S1[A-D]_(?<later>\d{8}T\d{6})__S1(?<serial>[A-D])_(?<earlier>\d{8}T\d{6})_(?:\d{8}T\d{6})_CARD-COH(?<days>6|12)$/;

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

/** Classes of raw data other than the standard one. */
const rawClasses: Readonly<Record<string, string>> = {
  A: 'annotations of raw radar signals',
  C: 'calibration measurements of the radar',
  N: 'noise measurements of the radar',
};

/** Slices of data takes, and what CloudFerro makes of them. */
export const sentinel1Name: NameReader = (name) => {
  const match = slice.exec(name);
  if (match === null) return coherenceName(name);
  const { stem, serial, mode, type, polarisation, start, end, orbit, form, ...rest } = groupsOf(
    match,
    ...(['stem', 'serial', 'mode', 'type', 'polarisation', 'start', 'end', 'orbit'] as const),
    ...(['form', 'level', 'class', 'resolution'] as const),
  );
  const times = nameTimesUs(start, end);
  if (times === null) return null;
  return namedProduct({
    satellite: `Sentinel-1${serial}`,
    instrument: instrumentOf('SAR'),
    type: sliceType(name, form),
    level: levelOf(rest.level, form),
    content: sliceContent(type, rest.class, rest.resolution, form),
    mode: modeWords(mode),
    polarisation: polarisations[polarisation] ?? polarisation,
    startUs: times[0],
    endUs: times[1],
    orbitNumber: Number(orbit),
    // The last four signs differ with every processing; another form of the product is no replacement.
    scene: { prefix: stem, contains: null, key: `${stem}*${form}` },
  });
};

/** A mode of Sentinel-1 (`IW`, `S3`) in words; null for an unknown one. */
export function modeWords(code: string): string | null {
  if (Object.hasOwn(modes, code)) return modes[code] ?? null;
  return /^(?:SM|EN|[SN][1-6])$/.test(code) ? `stripmap (${code})` : null;
}

function levelOf(digit: string, form: string): string {
  if (form === '_CARD_BS') return 'Level-2';
  return digit === 'A' ? 'Level-1' : `Level-${digit}`;
}

/** `IW_GRDH_1S-COG`: as it stands in the name behind the satellite, and the form. */
function sliceType(name: string, form: string): string {
  if (form === '_CARD_BS') return 'CARD-BS';
  return `${name.slice(4, 14)}${form === '_COG' ? '-COG' : ''}`;
}

function sliceContent(type: string, kind: string, resolution: string, form: string): string | null {
  if (form === '_CARD_BS') return 'terrain-corrected radar backscatter';
  if (type === 'RAW' && Object.hasOwn(rawClasses, kind)) return rawClasses[kind] ?? null;
  const content = `${resolutions[resolution] ?? ''}${contents[type] ?? type}`;
  return form === '_COG' ? `cloud-optimised ${content}` : content;
}

const coherenceName: NameReader = (name) => {
  const match = coherence.exec(name);
  if (match === null) return null;
  const { serial, later, earlier, days } = groupsOf(
    match,
    ...(['serial', 'later', 'earlier', 'days'] as const),
  );
  const times = nameTimesUs(later, earlier);
  if (times === null) return null;
  return namedProduct({
    satellite: `Sentinel-1${serial}`,
    instrument: instrumentOf('SAR'),
    type: `CARD-COH${days}`,
    level: 'Level-2',
    content: `interferometric coherence over ${days} days`,
    startUs: times[0],
    earlierUs: times[1],
  });
};

const tile =
  /^(?<prefix>S2(?<serial>[A-D])_MSI(?<level>L1C|L2A)_(?<start>\d{8}T\d{6})_)N(?<baseline>\d{4})_R(?<orbit>[01]\d\d)_T(?<tile>\d{2}[A-Z]{3})_(?<made>\d{8}T\d{6})(?:\.SAFE)?$/;

const sentinel2Contents: Readonly<Record<string, string>> = {
  L1C: 'top-of-atmosphere reflectance',
  L2A: 'surface reflectance',
};

export const sentinel2Name: NameReader = (name) => {
  const match = tile.exec(name);
  if (match === null) return null;
  const { prefix, serial, level, start, baseline, orbit, made, ...rest } = groupsOf(
    match,
    ...(['prefix', 'serial', 'level', 'start', 'baseline', 'orbit', 'tile', 'made'] as const),
  );
  const times = nameTimesUs(start, made);
  if (times === null) return null;
  const square = `_R${orbit}_T${rest.tile}_`;
  return namedProduct({
    satellite: `Sentinel-2${serial}`,
    instrument: instrumentOf('MSI'),
    type: `S2MSI${level.slice(1)}`,
    level: `Level-${level.slice(1)}`,
    content: sentinel2Contents[level] ?? null,
    startUs: times[0],
    tile: rest.tile,
    relativeOrbitNumber: Number(orbit),
    baseline: `${baseline.slice(0, 2)}.${baseline.slice(2)}`,
    // The last time tells products of one tile and data take apart; it is that of the processing.
    madeUs: times[1],
    scene: { prefix, contains: square, key: `${prefix}*${square}` },
  });
};

const product =
  /^(?<prefix>S3(?<serial>[A-D])_(?<type>[A-Z]{2}_[0-2_]_[A-Z0-9_]{6})_(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_)(?<made>\d{8}T\d{6})_(?<instance>\d{4}_\d{3}_(?<orbit>\d{3})_(?:\d{4}|____)|GLOBAL_{11}|EUROPE_{11}|AFRICA_{11}|ASIA_{13}|AUSTRALASIA_{6}|(?:NORTH|SOUTH)_AMERICA_{4}|CENTRAL_AMERICA__|(?:NORTH|WEST)_ASIA_{7,8}|_{17})_[A-Z]{2}[A-Z0-9]_[OFDR_]_(?<timeliness>NR|ST|NT)_(?<collection>\d{3})(?:\.SEN3)?$/;

const instruments: Readonly<Record<string, string>> = {
  OL: 'OLCI',
  SL: 'SLSTR',
  SR: 'SRAL',
  MW: 'MWR',
  SY: 'OLCI and SLSTR',
};

export const sentinel3Name: NameReader = (name) => {
  const match = product.exec(name);
  if (match === null) return null;
  const { prefix, serial, type, start, end, made, instance, orbit, ...rest } = groupsOf(
    match,
    ...(['prefix', 'serial', 'type', 'start', 'end', 'made', 'instance', 'orbit'] as const),
    ...(['timeliness', 'collection'] as const),
  );
  const [content, times] = [sentinel3Content(type), nameTimesUs(start, end, made)];
  if (content === null || times === null) return null;
  return namedProduct({
    satellite: `Sentinel-3${serial}`,
    instrument: instrumentOf(instruments[type.slice(0, 2)] ?? ''),
    type,
    level: `Level-${type[3]}`,
    content,
    timeliness: timelinessOfCode(rest.timeliness),
    startUs: times[0],
    endUs: times[1],
    relativeOrbitNumber: orbit === '' ? null : Number(orbit),
    baseline: rest.collection,
    madeUs: times[2],
    // Near real time and later processings of a frame are versions of each other.
    scene: { prefix, contains: `_${instance}_`, key: `${prefix}*_${instance}` },
  });
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
  SY_2_VG1___: 'surface reflectance for vegetation of a day',
  SY_2_V10___: 'surface reflectance for vegetation of ten days',
};

/** For a type such as `OL_1_EFR___`; null for an unknown one. */
export function sentinel3Content(type: string): string | null {
  return Object.hasOwn(sentinel3Contents, type) ? (sentinel3Contents[type] ?? null) : null;
}

const sentinel5pProduct =
  /^(?<prefix>S5P_(?<stream>NRTI|OFFL|RPRO)_(?<type>L1B_[A-Z0-9_]{6}|L2__[A-Z0-9_]{6})_(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_(?<orbit>\d{5})_)\d\d_(?<processor>\d{6})_(?<made>\d{8}T\d{6})(?:\.nc)?$/;

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

/** What products of a type such as `L2__NO2___` hold; null for an unknown type. */
export function sentinel5pContent(type: string): string | null {
  const [, band] = /^L1B_RA_BD([1-8])$/.exec(type) ?? [];
  if (band !== undefined) return `Earth radiance in band ${band}`;
  return Object.hasOwn(sentinel5pContents, type) ? (sentinel5pContents[type] ?? null) : null;
}

export const sentinel5pName: NameReader = (name) => {
  const match = sentinel5pProduct.exec(name);
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
