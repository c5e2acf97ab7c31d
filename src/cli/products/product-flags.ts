/** The friendly flags that choose products, each as a condition of the filter language. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { errorText, isAppError } from '../../domain/app-error.ts';
import type { FilterTree } from '../../domain/filter-tree.ts';
import { printable } from '../../domain/printable.ts';
import { type BoundingBox, parseBoundingBox } from '../../filter/bounding-box.ts';
import { attributeOf, textField } from '../../filter/builder-operands.ts';
import type { Io } from '../io.ts';
import { anyOf } from './conditions.ts';
import { parseNamePattern } from './name-pattern.ts';
import { parseTimeRange, type TimeRange } from './time-range.ts';

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
    .option('--collection <names>', 'such as SENTINEL-2 or S2; several with commas', collections)
    .option('--type <types>', 'product type, such as S2MSI2A; several with commas', types)
    .option(
      '--platform <names>',
      'S2A, or SENTINEL-2 for all of it; several with commas',
      platforms,
    )
    .option('--tile <tiles>', 'Sentinel-2 tile, 31UFR or T31UFR; several with commas', tiles)
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

function collections(text: string, previous?: FilterTree): FilterTree | undefined {
  return anyNamed(text, previous, (name) => {
    const short = /^S(\d)(P?)$/i.exec(name);
    // The catalogue writes all of its collections in capitals.
    const value = (short === null ? name : `SENTINEL-${short[1]}${short[2]}`).toUpperCase();
    return textField('Collection/Name').eq(value).tree;
  });
}

function types(text: string, previous?: FilterTree): FilterTree | undefined {
  return anyNamed(text, previous, (type) => attributeEquals('productType', type));
}

/** The catalogue has the serial letter in an attribute of its own. */
function platforms(text: string, previous?: FilterTree): FilterTree | undefined {
  return anyNamed(text, previous, (name) => {
    const match = /^S(?:ENTINEL-?)?(\d)(P?)([A-Z]?)$/i.exec(name.toUpperCase());
    if (match === null) return attributeEquals('platformShortName', name);
    const [, number = '', p = '', serial = ''] = match;
    const platform = attributeEquals('platformShortName', `SENTINEL-${number}${p}`);
    if (serial === '') return platform;
    return { node: 'and', terms: [platform, attributeEquals('platformSerialIdentifier', serial)] };
  });
}

function tiles(text: string, previous?: FilterTree): FilterTree | undefined {
  return anyNamed(text, previous, (tile) => {
    const [, zone = '', letters = ''] =
      /^T?(\d{1,2})([C-HJ-NP-X][A-HJ-NP-Z]{2})$/i.exec(tile) ?? [];
    if (letters === '' || Number(zone) < 1 || Number(zone) > 60) {
      throw new InvalidArgumentError(
        `${printable(tile)} is no tile: zones go from 1 to 60, then come a band from C to X and two letters, all without I and O. Use tiles such as 31UFR, with commas between several.`,
      );
    }
    return attributeEquals('tileId', zone.padStart(2, '0') + letters.toUpperCase());
  });
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

/** A flag that is repeated adds its values to those before. */
function anyNamed(
  text: string,
  previous: FilterTree | undefined,
  condition: (value: string) => FilterTree,
): FilterTree | undefined {
  const values = text.split(',').map((value) => value.trim());
  if (values.includes('')) throw new InvalidArgumentError('Use one, or several with commas.');
  const before = previous === undefined ? [] : [previous];
  return anyOf([...before, ...[...new Set(values)].map(condition)]) ?? undefined;
}
