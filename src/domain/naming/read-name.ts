/** Reads a product's name by the convention of its mission. */
import { instrumentOf, type NamedProduct, nameReader } from './product-name.ts';
import { sentinelNames } from './sentinels.ts';

const landsatName = nameReader(
  /^(?<prefix>L(?<sensor>[CETO])0(?<mission>[4-9])_(?<level>L1TP|L1GT|L1GS|L2SP|L2SR)_(?<path>[012]\d\d)(?<row>[012]\d\d)_(?<day>\d{8})_)(?<made>\d{8})_(?<collection>0[12])_(?<tier>T1|T2|RT)(?:\.tar)?$/,
  ['day', 'made'],
  // The name tells the day alone, which is no time of sensing.
  ({ prefix, sensor, mission, level, path, row, tier }, [, madeUs]) => ({
    satellite: `Landsat-${mission}`,
    instrument: landsatInstrument(sensor, mission),
    level: `Level-${level[1]}`,
    content: landsatContents[level] ?? null,
    timeliness: tier === 'RT' ? 'real time (RT)' : null,
    tile: `path ${Number(path)}, row ${Number(row)}`,
    madeUs,
    scene: { prefix, contains: null, key: prefix },
  }),
);

/** Above the longest name of any convention. */
const longest = 110;

/** What the name tells; null where it follows no known convention as a whole. Linear in its length. */
export function readName(name: string): NamedProduct | null {
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
