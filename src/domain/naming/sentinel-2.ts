/** Reads names of Sentinel-2 (S2-PDGS-TAS-DI-PSD, compact names; recorded products). */
import { instrumentOf } from './instruments.ts';
import { groupsOf, type NameReader, namedProduct, nameTimesUs } from './named-product.ts';

const tile =
  /^(?<prefix>S2(?<serial>[A-D])_MSI(?<level>L1C|L2A)_(?<start>\d{8}T\d{6})_)N(?<baseline>\d{4})_R(?<orbit>[01]\d\d)_T(?<tile>\d{2}[A-Z]{3})_(?<made>\d{8}T\d{6})(?:\.SAFE)?$/;

const contents: Readonly<Record<string, string>> = {
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
    content: contents[level] ?? null,
    startUs: times[0],
    tile: rest.tile,
    relativeOrbitNumber: Number(orbit),
    baseline: `${baseline.slice(0, 2)}.${baseline.slice(2)}`,
    // The last time tells products of one tile and data take apart; it is that of the processing.
    madeUs: times[1],
    scene: { prefix, contains: square, key: `${prefix}*${square}` },
  });
};
