/** Joins the flags that choose products to one tree of the filter language. */
import { AppError, isAppError } from '../../domain/app-error.ts';
import type { Entity, FilterTree } from '../../domain/filter-tree.ts';
import type { BoundingBox } from '../../filter/bounding-box.ts';
import { intersects } from '../../filter/builder.ts';
import { printFilter } from '../../filter/print.ts';
import { painter } from '../colour.ts';
import { readFilter } from '../filter/read-filter.ts';
import type { Io } from '../io.ts';
import { readAreaFile } from './area-file.ts';
import { allOf, during } from './conditions.ts';
import type { ConditionFlags, ProductFlags } from './product-flags.ts';

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
  const box = bbox === undefined ? undefined : intersectsBox(bbox, io);
  const area = areaOf(flags, io);
  const terms = [collection, type, platform, tile, cloudBelow, box, area, ...name];
  return allOf(terms.filter((term) => term !== undefined));
}

function areaOf({ area, intersects }: ConditionFlags, io: Pick<Io, 'readFile'>) {
  if (area !== undefined) return readAreaFile('--area', area, io);
  return intersects === undefined ? undefined : readAreaFile('--intersects', intersects, io);
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
