/** Reads a product's name by the convention of its mission. */
import { auxiliaryName } from './auxiliary.ts';
import {
  groupsOf,
  instrumentOf,
  type NamedProduct,
  type NameReader,
  namedProduct,
  nameTimesUs,
  timelinessOfCode,
} from './product-name.ts';
import { sentinel1Name, sentinel2Name, sentinel3Name, sentinel5pName } from './sentinels.ts';

const sentinel6Name: NameReader = (name) => {
  const match = sentinel6.exec(name);
  if (match === null) return null;
  const { prefix, serial, level, mode, start, end, made, orbit, timeliness, baseline } = groupsOf(
    match,
    ...(['prefix', 'serial', 'level', 'mode', 'start', 'end', 'made'] as const),
    ...(['orbit', 'timeliness', 'baseline'] as const),
  );
  const times = nameTimesUs(start, end, made);
  if (times === null) return null;
  return namedProduct({
    satellite: `Sentinel-6${serial}`,
    instrument: instrumentOf('POSEIDON-4'),
    level: `Level-${level.replace('_', '')}`,
    content: level === '2_' ? 'sea surface heights' : 'calibrated radar echoes',
    mode: mode === 'HR' ? 'high resolution (HR)' : 'low resolution (LR)',
    timeliness: timelinessOfCode(timeliness),
    startUs: times[0],
    endUs: times[1],
    relativeOrbitNumber: Number(orbit),
    baseline,
    madeUs: times[2],
    scene: { prefix, contains: null, key: prefix },
  });
};

const landsatName: NameReader = (name) => {
  const match = landsat.exec(name);
  if (match === null) return null;
  const { prefix, sensor, number, level, path, row, day, made, tier } = groupsOf(
    match,
    ...(['prefix', 'sensor', 'number', 'level', 'path', 'row', 'day', 'made', 'tier'] as const),
  );
  const times = nameTimesUs(day, made);
  if (times === null) return null;
  return namedProduct({
    satellite: `Landsat-${number}`,
    instrument: landsatInstrument(sensor, number),
    level: `Level-${level[1]}`,
    content: landsatContents[level] ?? null,
    timeliness: tiers[tier] ?? null,
    // The name tells the day alone, which is no time of sensing.
    tile: `path ${Number(path)}, row ${Number(row)}`,
    madeUs: times[1],
    scene: { prefix, contains: null, key: prefix },
  });
};

const readers: readonly NameReader[] = [
  sentinel1Name,
  sentinel2Name,
  sentinel3Name,
  sentinel5pName,
  auxiliaryName,
  sentinel6Name,
  landsatName,
];

/** Above the longest name of any convention. */
const longest = 110;

/** What the name tells; null where it follows no known convention as a whole. Linear in its length. */
export function readName(name: string): NamedProduct | null {
  if (name.length > longest) return null;
  for (const read of readers) {
    const found = read(name);
    if (found !== null) return found;
  }
  return null;
}

const landsat =
  /^(?<prefix>L(?<sensor>[CETO])0(?<number>[4-9])_(?<level>L1TP|L1GT|L1GS|L2SP|L2SR)_(?<path>[012]\d\d)(?<row>[012]\d\d)_(?<day>\d{8})_)(?<made>\d{8})_(?<collection>0[12])_(?<tier>T1|T2|RT)(?:\.tar)?$/;

const landsatContents: Readonly<Record<string, string>> = {
  L1TP: 'terrain-corrected images',
  L1GT: 'systematically terrain-corrected images',
  L1GS: 'systematically corrected images',
  L2SP: 'surface reflectance and surface temperature',
  L2SR: 'surface reflectance',
};

const tiers: Readonly<Record<string, string>> = { RT: 'real time (RT)' };

function landsatInstrument(sensor: string, number: string) {
  if (sensor === 'C') return instrumentOf('OLI and TIRS');
  if (sensor === 'O') return instrumentOf('OLI');
  if (sensor === 'E') return instrumentOf('ETM+');
  return instrumentOf(Number(number) < 8 ? 'TM' : 'TIRS');
}

const sentinel6 =
  /^(?<prefix>S6(?<serial>[AB])_P4_(?<level>1A|1B|2_)_(?<mode>HR|LR)_(?<kind>STD|RED|___)___?(?<start>\d{8}T\d{6})_(?<end>\d{8}T\d{6})_)(?<made>\d{8}T\d{6})_\d{4}_\d{3}_(?<orbit>\d{3})_\d{3}_EUM__(?:OPE|REP|VAL)_(?<timeliness>NR|ST|NT)_(?<baseline>F\d\d)(?:\.SEN6)?$/;
