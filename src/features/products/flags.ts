/** Flags that select products. Each becomes a condition of the filter language. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { maxAgeOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { warn } from '../../core/cli/output.ts';
import { readFilter } from '../../core/cli/row-forms.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import { durationUs, millisecondOf, parseDate, readDateUs } from '../../core/terms/dates.ts';
import { printable } from '../../core/terms/text.ts';
import { attributeOf, intersects, readGeoJsonFile, textField } from '../../filter/builder.ts';
import { checkFilter } from '../../filter/check.ts';
import { type Entity, type FilterTree, joined } from '../../filter/filter-tree.ts';
import { type BoundingBox, parseBoundingBox } from '../../filter/geometry/read-geometry.ts';
import { printFilter } from '../../filter/print.ts';
import { attributeEquals, platformCondition } from '../../filter/product-conditions.ts';

/** Flags without times. A subscription filter can also be built from them. */
export interface ConditionFlags {
  collection?: FilterTree;
  type?: FilterTree;
  platform?: FilterTree;
  tile?: FilterTree;
  cloudBelow?: FilterTree;
  bbox?: BoundingBox;
  area?: string;
  name?: FilterTree[];
}

export interface ProductFlags extends ConditionFlags {
  filter?: string;
  sensed?: TimeRange;
  published?: TimeRange;
  maxAge?: number;
  /** True without a time. */
  deleted?: true | TimeRange;
}

/** `--filter`, next to the flags that select products. */
export function filterOption(): Option {
  return new Option(
    '--filter <expression>',
    '$filter expression (combined with the other flags by "and")',
  );
}

/** Adds the flags of a product query. */
export function addProductFlags(command: Command, io: Pick<Io, 'nowUs'>): Command {
  const range = (text: string) => parseTimeRange(text, io.nowUs());
  return addConditionFlags(command.addOption(filterOption()))
    .option(
      '--sensed <when>',
      'start of sensing (24h, 7d, 2026-11, 2026-11-20, A..B, A.. or ..B; UTC)',
      range,
    )
    .option('--published <when>', 'time of publication (formats as for --sensed)', range)
    .addOption(maxAgeOption())
    .option(
      '--deleted [when]',
      'search deleted products (optional: time of deletion; formats as for --sensed)',
      range,
    );
}

/** Adds the flags without times. */
export function addConditionFlags(command: Command): Command {
  return command
    .option(
      '--collection <names>',
      'collection, such as SENTINEL-2 or S2 (comma-separated)',
      anyOf(collection),
    )
    .option(
      '--type <types>',
      'product type, such as S2MSI2A, or group, such as GRD (comma-separated)',
      anyOf(productType),
    )
    .option(
      '--platform <names>',
      'satellite, such as S2A, or mission, such as SENTINEL-2 (comma-separated)',
      anyOf(platformCondition),
    )
    .option(
      '--tile <tiles>',
      'Sentinel-2 tile, such as 31UFR or T31UFR (comma-separated)',
      anyOf(tile),
    )
    .option(
      '--cloud-below <percent>',
      'upper limit of the cloud cover in percent (exclusive)',
      cloudBelow,
    )
    .option(
      '--bbox <box>',
      'bounding box in degrees: west,south,east,north (across the antimeridian if west > east)',
      boundingBox,
    )
    .option('--area <file>', 'GeoJSON file with the area')
    .option('--name <pattern>', 'product name (* matches any text)', parseNamePattern);
}

function boundingBox(text: string): BoundingBox {
  try {
    return parseBoundingBox(text);
  } catch (error) {
    if (isAppError(error, 'invalid')) throw new InvalidArgumentError(errorText(error));
    throw error;
  }
}

/** Returns a parser of comma-separated values. A repeated flag adds its values. */
function anyOf(condition: (value: string) => FilterTree) {
  return (text: string, previous?: FilterTree): FilterTree | undefined => {
    const values = text.split(',').map((value) => value.trim());
    if (values.includes(''))
      throw new InvalidArgumentError('Use one or more names, comma-separated.');
    const before = previous === undefined ? [] : [previous];
    return joined('or', [...before, ...[...new Set(values)].map(condition)]) ?? undefined;
  };
}

function collection(name: string): FilterTree {
  const short = /^S(\d)(P?)$/i.exec(name);
  // All collection names of the catalogue are upper-case.
  const value = (short === null ? name : `SENTINEL-${short[1]}${short[2]}`).toUpperCase();
  return textField('Collection/Name').eq(value).tree;
}

const productType = (type: string) => attributeEquals('productType', type);

function tile(text: string): FilterTree {
  const [, zone = '', letters = ''] = /^T?(\d{1,2})([C-HJ-NP-X][A-HJ-NP-Z]{2})$/i.exec(text) ?? [];
  if (letters === '' || Number(zone) < 1 || Number(zone) > 60) {
    throw new InvalidArgumentError(
      `${printable(text)} is not a tile. A tile is a zone from 1 to 60, a band from C to X and two letters, without I and O. Use tiles such as 31UFR, comma-separated.`,
    );
  }
  return attributeEquals('tileId', zone.padStart(2, '0') + letters.toUpperCase());
}

function cloudBelow(text: string): FilterTree {
  const value = Number(text.replace(/%$/, ''));
  // 101 includes a cloud cover of 100 %.
  if (text.trim() === '' || !(value >= 0 && value <= 101)) {
    throw new InvalidArgumentError(
      'Cloud cover is a percentage. Use a number greater than 0 and at most 100, such as 20.',
    );
  }
  if (value === 0) {
    throw new InvalidArgumentError(
      'Cloud cover is never below 0 percent. Use a number greater than 0, such as 20.',
    );
  }
  return attributeOf('cloudCover', 'Double').lt(value).tree;
}

/** Compiles the flags to a filter for products or tombstones. Throws `usage`; warns on stderr. */
export function compileFlags(
  flags: ProductFlags,
  io: Pick<Io, 'stderr' | 'env' | 'readFile'>,
): { entity: Entity; filter: FilterTree | null } {
  const { deleted, published, maxAge, filter } = flags;
  const entity = deleted === undefined ? 'Products' : 'DeletedProducts';
  if (deleted !== undefined && (published ?? maxAge) !== undefined) {
    throw new AppError(
      'usage',
      'The catalogue has no publication date for deleted products. Use --deleted 7d (deletion time) or --sensed.',
    );
  }
  const expression = filter === undefined ? null : readFilter(filter, entity, io);
  warnUnknownNames(flags, entity, io);
  const terms = [
    conditionsOf(flags, io),
    ...during('ContentDate/Start', flags.sensed),
    ...during('PublicationDate', published),
    ...during('DeletionDate', deleted === true ? undefined : deleted),
    expression,
  ];
  return { entity, filter: joined('and', terms) };
}

/** Warns about unknown collections and product types in one line each: they may be new. */
function warnUnknownNames(
  { collection, type }: ConditionFlags,
  entity: Entity,
  io: Pick<Io, 'stderr' | 'env'>,
): void {
  const named = joined('and', [collection, type]);
  const { findings } = checkFilter(named === null ? '' : printFilter(named), entity);
  for (const { code, message, hint = '' } of findings) {
    if (code.startsWith('unknown-')) warn(io, `${message} ${hint}`.trimEnd());
  }
}

/** Combines the flags without times by "and"; null without any. Throws `usage` for an invalid area. */
export function conditionsOf(
  flags: ConditionFlags,
  io: Pick<Io, 'readFile' | 'stderr' | 'env'>,
): FilterTree | null {
  const { collection, type, platform, tile, cloudBelow, bbox, area: file, name = [] } = flags;
  if (bbox?.warning) warn(io, `--bbox: ${bbox.warning}`);
  const box = bbox && attempt('--bbox: ', () => intersects(bbox.geometry).tree);
  const area = file === undefined ? undefined : readAreaFile(file, io);
  const terms = [collection, type, platform, tile, cloudBelow, box, area, ...name];
  return joined('and', terms);
}

/** Conditions for a date within a time range: none, one or two. */
export function during(field: string, { fromUs, untilUs }: TimeRange = {}): FilterTree[] {
  const compared = (operator: 'ge' | 'lt', us: number | undefined): FilterTree[] =>
    us === undefined
      ? []
      : [{ node: 'comparison', field, operator, literal: { type: 'date', us } }];
  return [...compared('ge', fromUs), ...compared('lt', untilUs)];
}

/**
 * Returns the condition that a footprint intersects the area. Throws `usage` if the file is unreadable, is not
 * GeoJSON, or has an invalid geometry.
 */
export function readAreaFile(path: string, { readFile }: Pick<Io, 'readFile'>): FilterTree {
  // Errors of readGeoJsonFile already name the file.
  const area = attempt('--area: ', () => readGeoJsonFile(path, () => readFile(path)));
  return attempt(`--area: ${path} cannot be used: `, () => intersects(area).tree);
}

function attempt<Value>(prefix: string, work: () => Value): Value {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    throw cause.with({ code: 'usage', message: `${prefix}${cause.message}`, cause });
  }
}

/**
 * Converts a name pattern to conditions: `Name eq` without a `*`; otherwise startswith for the text before the first
 * `*`, endswith for the text after the last, contains (in any order) for the text between. Throws
 * InvalidArgumentError.
 */
function parseNamePattern(text: string): FilterTree[] {
  if (text.includes('?')) {
    throw new InvalidArgumentError(
      `The filter language does not support "?". Use * for any text: '${text.replaceAll(/[?*]+/g, '*')}'.`,
    );
  }
  const parts = text.split('*');
  if (parts.every((part) => part === '')) {
    throw new InvalidArgumentError('Give a part of the name, or omit --name.');
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

/** Microseconds since 1970, UTC; `fromUs` is inclusive, `untilUs` exclusive. An absent end is open. */
export interface TimeRange {
  fromUs?: number | undefined;
  untilUs?: number | undefined;
}

const advice =
  'Use 24h or 7d (before now), or a year, month or day such as 2026-11. For a range, use A..B, A.. or ..B; A and B can also be times such as 2026-11-20T06:00Z.';

/**
 * Parses `24h`, `7d`, `2026`, `2026-11`, `2026-11-20`, `A..B`, `A..`, `..B`. A year, month or day at the end of a
 * range is included as a whole. UTC without a zone. Throws InvalidArgumentError.
 */
function parseTimeRange(text: string, nowUs: number): TimeRange {
  const [from = '', until, ...more] = text.split('..').map((part) => part.trim());
  if (until === undefined) return singleRange(from, nowUs);
  if (more.length > 0 || (from === '' && until === '')) throw new InvalidArgumentError(advice);
  const fromUs = from === '' ? undefined : moment(from, nowUs).fromUs;
  const untilUs = until === '' ? undefined : moment(until, nowUs).untilUs;
  if (fromUs === undefined || untilUs === undefined || fromUs < untilUs) return { fromUs, untilUs };
  throw new InvalidArgumentError(`The range ends before it starts. Put ${until} first.`);
}

function singleRange(text: string, nowUs: number): TimeRange {
  const range = moment(text, nowUs);
  if (durationUs(text) !== null) return { fromUs: range.fromUs };
  if (range.fromUs !== range.untilUs) return range;
  throw new InvalidArgumentError(
    `A single time is not a range. Use ${text}.. for later times or ..${text} for earlier ones.`,
  );
}

/** Returns the range of the named day, month or year, which is open after 9999. A time is its own start and end. */
function moment(text: string, nowUs: number): TimeRange {
  const backUs = durationUs(text);
  if (backUs !== null) return { fromUs: nowUs - backUs, untilUs: nowUs - backUs };
  const calendar = /^(\d{4})(?:-(\d\d))?(?:-(\d\d))?$/.exec(text);
  if (calendar !== null) return calendarSpan(calendar);
  const date = parseDate(text);
  if (date === null) throw new InvalidArgumentError(advice);
  return { fromUs: date.us, untilUs: date.us };
}

function calendarSpan([, year = '', month, day]: RegExpExecArray): TimeRange {
  const start = parseDate(`${year}-${month ?? '01'}-${day ?? '01'}`);
  if (start === null) throw new InvalidArgumentError(advice);
  const end = new Date(millisecondOf(start.us));
  if (day !== undefined) end.setUTCDate(end.getUTCDate() + 1);
  else if (month !== undefined) end.setUTCMonth(end.getUTCMonth() + 1);
  else end.setUTCFullYear(end.getUTCFullYear() + 1);
  return { fromUs: start.us, untilUs: readDateUs(end.toISOString()) ?? undefined };
}
