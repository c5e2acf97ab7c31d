/** Reads names of Sentinel-1 (the mission's product specification; recorded products). */
import { instrumentOf } from './instruments.ts';
import { groupsOf, type NameReader, namedProduct, nameTimesUs } from './named-product.ts';

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
