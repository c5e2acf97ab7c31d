/**
 * Reads names of the auxiliary files of Sentinel-1, 2 and 3 (ESA-EOPG-EOPGC-TN-37, Copernicus Sentinel
 * Auxiliary Data Portfolio; recorded products).
 */
import { groupsOf, type NameReader, namedProduct, nameTimesUs } from './product-name.ts';

const missionFile =
  /^(?<stem>S1(?<serial>[A-D_])_(?<type>AUX_[A-Z0-9]{3})_V(?<start>\d{8}T\d{6})_G)(?<made>\d{8}T\d{6})(?:\.SAFE)?$/;

const operationsFile =
  /^S(?<mission>[123])(?<serial>[A-D_])_OPER_(?<type>AUX_[A-Z0-9]{6})_(?:OPOD|POD_|PDMC|MPC_|ADG_)_(?<made>\d{8}T\d{6})_V(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})(?:\.EOF|\.TGZ)?$/;

/** What the files of each type hold. Names of other types are not taken for known ones. */
const contents: Readonly<Record<string, string>> = {
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
  AUX_UT1UTC: 'differences of astronomical and civil time',
};

/** What an auxiliary file of this type holds; null for an unknown type. */
export function auxiliaryContent(type: string): string | null {
  return Object.hasOwn(contents, type) ? (contents[type] ?? null) : null;
}

export const auxiliaryName: NameReader = (name) => missionFileName(name) ?? operationsName(name);

/** Valid from a moment on, until a newer file of the same kind says otherwise. */
const missionFileName: NameReader = (name) => {
  const match = missionFile.exec(name);
  if (match === null) return null;
  const { stem, serial, type, start, made } = groupsOf(
    match,
    ...(['stem', 'serial', 'type', 'start', 'made'] as const),
  );
  const [content, times] = [auxiliaryContent(type), nameTimesUs(start, made)];
  if (content === null || times === null) return null;
  return namedProduct({
    satellite: satelliteOf('1', serial),
    auxiliary: true,
    type,
    content,
    startUs: times[0],
    madeUs: times[1],
    scene: { prefix: stem, contains: null, key: stem },
  });
};

const operationsName: NameReader = (name) => {
  const match = operationsFile.exec(name);
  if (match === null) return null;
  const { mission, serial, type, start, end, made } = groupsOf(
    match,
    ...(['mission', 'serial', 'type', 'start', 'end', 'made'] as const),
  );
  const [content, times] = [auxiliaryContent(type), nameTimesUs(start, end, made)];
  if (content === null || times === null) return null;
  // The time at which it was made stands before the validity: there is no beginning to search by.
  return namedProduct({
    satellite: satelliteOf(mission, serial),
    auxiliary: true,
    type,
    content,
    startUs: times[0],
    endUs: times[1],
    madeUs: times[2],
  });
};

function satelliteOf(mission: string, serial: string): string {
  return `Sentinel-${mission}${serial === '_' ? '' : serial}`;
}
