/** Reads names of Sentinel-3 (the mission's file naming convention; recorded products). */
import { instrumentOf } from './instruments.ts';
import { groupsOf, type NameReader, namedProduct, nameTimesUs } from './named-product.ts';
import { sentinel3Content } from './sentinel-3-types.ts';
import { timelinessOfCode } from './timeliness.ts';

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
