/** The friendly flags that choose products, each as a condition of the filter language. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { readGeoJsonFile } from '../config/geojson-file.ts';
import { AppError, errorText, isAppError } from '../domain/app-error.ts';
import { parseDate } from '../domain/dates.ts';
import type { Entity, FilterTree } from '../domain/filter-tree.ts';
import { printable } from '../domain/text.ts';
import { type BoundingBox, parseBoundingBox } from '../filter/bounding-box.ts';
import { attributeOf, intersects, textField } from '../filter/builder.ts';
import { printFilter } from '../filter/print.ts';
import { readFilter } from './filter-text.ts';
import { lengthOfTimeUs } from './flags.ts';
import type { Io } from './io.ts';
import { painter } from './output.ts';

/** The flags that a subscription's filter can be made of, too: no times. */
export interface ConditionFlags {
  collection?: FilterTree;
  type?: FilterTree;
  platform?: FilterTree;
  tile?: FilterTree;
  cloudBelow?: FilterTree;
  bbox?: BoundingBox;
  area?: string;
  /** The earlier name of `area`. */
  intersects?: string;
  name?: FilterTree[];
}

export interface ProductFlags extends ConditionFlags {
  filter?: string;
  sensed?: TimeRange;
  published?: TimeRange;
  /** True without a time. */
  deleted?: true | TimeRange;
}

/** Adds the flags of a query to a command. */
export function addProductFlags(command: Command, io: Pick<Io, 'nowUs'>): Command {
  const range = (text: string) => parseTimeRange(text, io.nowUs());
  command.option(
    '--filter <expression>',
    'a $filter expression; joined to the other flags by "and"',
  );
  return addConditionFlags(command)
    .option(
      '--sensed <when>',
      'sensing begins then: 24h, 7d, 2026-11, 2026-11-20, A..B, A.., ..B (UTC)',
      range,
    )
    .option('--published <when>', 'published then', range)
    .option('--deleted [when]', 'what has been deleted instead: at any time, or then', range);
}

/** Adds those flags that are no times. */
export function addConditionFlags(command: Command): Command {
  return command
    .option(
      '--collection <names>',
      'such as SENTINEL-2 or S2; several with commas',
      anyOf(collection),
    )
    .option(
      '--type <types>',
      'product type, such as S2MSI2A; several with commas',
      anyOf(productType),
    )
    .option(
      '--platform <names>',
      'S2A, or SENTINEL-2 for all of it; several with commas',
      anyOf(platform),
    )
    .option('--tile <tiles>', 'Sentinel-2 tile, 31UFR or T31UFR; several with commas', anyOf(tile))
    .option('--cloud-below <percent>', 'less cloud cover than this', cloudBelow)
    .option(
      '--bbox <box>',
      'west,south,east,north in degrees; west beyond east: across the antimeridian',
      boundingBox,
    )
    .option('--area <file>', 'the area in a GeoJSON file')
    .addOption(new Option('--intersects <file>').hideHelp().conflicts('area'))
    .option(
      '--name <pattern>',
      'the whole name; * stands for any text at an end or between',
      parseNamePattern,
    );
}

function boundingBox(text: string): BoundingBox {
  try {
    return parseBoundingBox(text);
  } catch (error) {
    if (isAppError(error, 'invalid')) throw new InvalidArgumentError(errorText(error));
    throw error;
  }
}

/** A parser of values with commas between them. A flag that is repeated adds its values to those before. */
function anyOf(condition: (value: string) => FilterTree) {
  return (text: string, previous?: FilterTree): FilterTree | undefined => {
    const values = text.split(',').map((value) => value.trim());
    if (values.includes('')) throw new InvalidArgumentError('Use one, or several with commas.');
    const before = previous === undefined ? [] : [previous];
    return group('or', [...before, ...[...new Set(values)].map(condition)]) ?? undefined;
  };
}

function collection(name: string): FilterTree {
  const short = /^S(\d)(P?)$/i.exec(name);
  // The catalogue writes all of its collections in capitals.
  const value = (short === null ? name : `SENTINEL-${short[1]}${short[2]}`).toUpperCase();
  return textField('Collection/Name').eq(value).tree;
}

const productType = (type: string) => attributeEquals('productType', type);

/** The catalogue has the serial letter in an attribute of its own. */
function platform(name: string): FilterTree {
  const match = /^S(?:ENTINEL-?)?(\d)(P?)([A-Z]?)$/i.exec(name.toUpperCase());
  if (match === null) return attributeEquals('platformShortName', name);
  const [, number = '', p = '', serial = ''] = match;
  const all = attributeEquals('platformShortName', `SENTINEL-${number}${p}`);
  if (serial === '') return all;
  return { node: 'and', terms: [all, attributeEquals('platformSerialIdentifier', serial)] };
}

function tile(text: string): FilterTree {
  const [, zone = '', letters = ''] = /^T?(\d{1,2})([C-HJ-NP-X][A-HJ-NP-Z]{2})$/i.exec(text) ?? [];
  if (letters === '' || Number(zone) < 1 || Number(zone) > 60) {
    throw new InvalidArgumentError(
      `${printable(text)} is no tile: zones go from 1 to 60, then come a band from C to X and two letters, all without I and O. Use tiles such as 31UFR, with commas between several.`,
    );
  }
  return attributeEquals('tileId', zone.padStart(2, '0') + letters.toUpperCase());
}

function cloudBelow(text: string): FilterTree {
  const value = Number(text.replace(/%$/, ''));
  // 101 includes what is cloudy all over.
  if (text.trim() === '' || !(value >= 0 && value <= 101)) {
    throw new InvalidArgumentError(
      'Cloud cover is a number from 0 to 100 (percent). Use one above 0, such as 20.',
    );
  }
  if (value === 0) {
    throw new InvalidArgumentError('None has less than 0 percent. Use a number such as 20.');
  }
  return attributeOf('cloudCover', 'Double').lt(value).tree;
}

function attributeEquals(name: string, value: string): FilterTree {
  return attributeOf(name, 'String').eq(value).tree;
}

/** The flags as a question about products or tombstones. Throws `usage`; warns on stderr. */
export function compileFlags(
  flags: ProductFlags,
  io: Pick<Io, 'stderr' | 'env' | 'readFile'>,
): { entity: Entity; filter: FilterTree | null } {
  const { deleted, published, filter } = flags;
  const entity = deleted === undefined ? 'Products' : 'DeletedProducts';
  if (deleted !== undefined && published !== undefined) {
    throw new AppError(
      'usage',
      'The catalogue keeps no publication date of deleted products: use --deleted 7d for those deleted then, or --sensed.',
    );
  }
  const written = filter === undefined ? null : readFilter(filter, entity, io);
  // Warns of an unknown collection, as for one in --filter.
  if (flags.collection !== undefined) readFilter(printFilter(flags.collection), entity, io);
  const terms = [
    conditionsOf(flags, io),
    ...during('ContentDate/Start', flags.sensed),
    ...during('PublicationDate', published),
    ...during('DeletionDate', deleted === true ? undefined : deleted),
    written,
  ];
  return { entity, filter: allOf(terms.filter((term) => term !== null)) };
}

/** The flags that are no times, joined by "and"; null without any. Throws `usage` for an area that cannot be used. */
export function conditionsOf(
  flags: ConditionFlags,
  io: Pick<Io, 'readFile' | 'stderr' | 'env'>,
): FilterTree | null {
  const { collection, type, platform, tile, cloudBelow, bbox, name = [] } = flags;
  const { area: file = flags.intersects } = flags;
  const flag = flags.area === undefined ? '--intersects' : '--area';
  const box = bbox === undefined ? undefined : intersectsBox(bbox, io);
  const area = file === undefined ? undefined : readAreaFile(flag, file, io);
  const terms = [collection, type, platform, tile, cloudBelow, box, area, ...name];
  return allOf(terms.filter((term) => term !== undefined));
}

function intersectsBox(
  { geometry, warning }: BoundingBox,
  io: Pick<Io, 'stderr' | 'env'>,
): FilterTree {
  if (warning !== null) {
    io.stderr.write(`${painter(io, io.stderr)('yellow', 'warning')}: --bbox: ${warning}\n`);
  }
  try {
    return intersects(geometry).tree;
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    const { details } = error;
    const message = '--bbox: the box is too small to be one.';
    const advice = 'Make it wider, or a point.';
    throw new AppError('usage', message, { advice, cause: error, details });
  }
}

/** All of these conditions; null for none. */
export function allOf(terms: readonly FilterTree[]): FilterTree | null {
  return group('and', terms);
}

/** A date within a span: no condition, one or two. */
export function during(field: string, { fromUs, untilUs }: TimeRange = {}): FilterTree[] {
  const compared = (operator: 'ge' | 'lt', us: number | undefined): FilterTree[] =>
    us === undefined
      ? []
      : [{ node: 'comparison', field, operator, literal: { type: 'date', us } }];
  return [...compared('ge', fromUs), ...compared('lt', untilUs)];
}

/** Null for no terms. A group within one of its own kind is dissolved, as trees are written without. */
function group(node: 'and' | 'or', terms: readonly FilterTree[]): FilterTree | null {
  const flat = terms.flatMap((term) => (term.node === node ? term.terms : [term]));
  const [only, ...others] = flat;
  if (only === undefined) return null;
  return others.length === 0 ? only : { node, terms: flat };
}

/**
 * The condition that a footprint has a place in common with it. Throws `usage` for a file that cannot
 * be read, is no GeoJSON, or holds a geometry with faults.
 */
export function readAreaFile(
  flag: string,
  path: string,
  { readFile }: Pick<Io, 'readFile'>,
): FilterTree {
  const attempt = <Value>(prefix: string, work: () => Value): Value => {
    try {
      return work();
    } catch (cause) {
      if (!(cause instanceof AppError)) throw cause;
      throw cause.with({ code: 'usage', message: `${flag}: ${prefix}${cause.message}`, cause });
    }
  };
  // The reader's own errors name the file.
  const area = attempt('', () => readGeoJsonFile(path, readFile));
  return attempt(`${path} cannot be used: `, () => intersects(area).tree);
}

/**
 * Conditions that must all be met: `Name eq` without a `*`; else startswith for what stands before the
 * first one, endswith for what stands after the last, contains for what stands between, which may
 * come in any order. Throws commander's InvalidArgumentError.
 */
function parseNamePattern(text: string): FilterTree[] {
  if (text.includes('?')) {
    throw new InvalidArgumentError(
      `The filter language has no "?". Use * for any text: '${text.replaceAll(/[?*]+/g, '*')}'.`,
    );
  }
  const parts = text.split('*');
  if (parts.every((part) => part === '')) {
    throw new InvalidArgumentError('Say part of the name, or leave --name out for any.');
  }
  const [first = '', ...rest] = parts;
  const last = rest.pop();
  const name = textField('Name');
  if (last === undefined) return [name.eq(text).tree];
  const conditions = [
    ...[first].filter(Boolean).map(name.startsWith),
    ...rest.filter(Boolean).map(name.contains),
    ...[last].filter(Boolean).map(name.endsWith),
  ];
  return conditions.map(({ tree }) => tree);
}

/** Microseconds since 1970, UTC; `fromUs` is in it, `untilUs` is not. An absent end is open. */
export interface TimeRange {
  fromUs?: number | undefined;
  untilUs?: number | undefined;
}

const advice =
  'Use 24h or 7d (back from now), a year, month or day such as 2026-11, or A..B, A.., ..B of these or of times such as 2026-11-20T06:00Z.';

/**
 * Reads `24h`, `7d`, `2026`, `2026-11`, `2026-11-20`, `A..B`, `A..`, `..B`; an end that is a year, a month
 * or a day belongs to the span as a whole. UTC unless a time names a zone. Throws commander's
 * InvalidArgumentError.
 */
function parseTimeRange(text: string, nowUs: number): TimeRange {
  const [from = '', until, ...more] = text.split('..').map((part) => part.trim());
  if (until === undefined) return rangeOf(moment(from, nowUs), from);
  if (more.length > 0 || (from === '' && until === '')) throw new InvalidArgumentError(advice);
  const fromUs = from === '' ? undefined : moment(from, nowUs).startUs;
  const untilUs = until === '' ? undefined : moment(until, nowUs).endUs;
  if (fromUs === undefined || untilUs === undefined || fromUs < untilUs) return { fromUs, untilUs };
  throw new InvalidArgumentError(`It ends before it begins: put ${until} first.`);
}

function rangeOf({ startUs, endUs, kind }: Moment, text: string): TimeRange {
  if (kind === 'back') return { fromUs: startUs };
  if (kind === 'span') return { fromUs: startUs, untilUs: endUs };
  throw new InvalidArgumentError(
    `A moment is no span of time: use ${text}.. for all from then on, or ..${text} for all before.`,
  );
}

interface Moment {
  startUs: number;
  /** Where what the text names has ended: the same, or that of the next day, month or year. */
  endUs: number;
  kind: 'back' | 'span' | 'time';
}

function moment(text: string, nowUs: number): Moment {
  const backUs = lengthOfTimeUs(text);
  if (backUs !== null) return { startUs: nowUs - backUs, endUs: nowUs - backUs, kind: 'back' };
  const calendar = /^(\d{4})(?:-(\d\d))?(?:-(\d\d))?$/.exec(text);
  if (calendar !== null) return calendarSpan(calendar);
  const date = parseDate(text);
  if (date === null) throw new InvalidArgumentError(advice);
  return { startUs: date.us, endUs: date.us, kind: 'time' };
}

function calendarSpan([, year = '', month, day]: RegExpExecArray): Moment {
  const start = parseDate(`${year}-${month ?? '01'}-${day ?? '01'}`);
  if (start === null) throw new InvalidArgumentError(advice);
  const end = new Date(start.us / 1000);
  if (day !== undefined) end.setUTCDate(end.getUTCDate() + 1);
  else if (month !== undefined) end.setUTCMonth(end.getUTCMonth() + 1);
  else end.setUTCFullYear(end.getUTCFullYear() + 1);
  return { startUs: start.us, endUs: end.getTime() * 1000, kind: 'span' };
}
