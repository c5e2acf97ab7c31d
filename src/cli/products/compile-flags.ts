/** Joins the flags that choose products to one tree of the filter language. */
import { AppError } from '../../domain/app-error.ts';
import type { Entity, FilterTree } from '../../domain/filter-tree.ts';
import { readFilter } from '../filter/read-filter.ts';
import type { Io } from '../io.ts';
import { readAreaFile } from './area-file.ts';
import { allOf, during, intersectsArea } from './conditions.ts';
import type { ProductFlags } from './product-flags.ts';

/** The flags as a question about products or tombstones. Throws `usage`; warns on stderr. */
export function compileFlags(
  flags: ProductFlags,
  io: Pick<Io, 'stderr' | 'env' | 'readFile'>,
): { entity: Entity; filter: FilterTree | null } {
  const { deleted, published, intersects, filter } = flags;
  const entity = deleted === undefined ? 'Products' : 'DeletedProducts';
  if (deleted !== undefined && published !== undefined) {
    throw new AppError(
      'usage',
      'The catalogue keeps no publication date of deleted products: use --deleted 7d for those deleted then, or --sensed.',
    );
  }
  const written = filter === undefined ? null : readFilter(filter, entity, io);
  const area = intersects === undefined ? undefined : readAreaFile(intersects, io);
  const { collection, type, platform, tile, cloudBelow, bbox } = flags;
  const terms = [
    ...[collection, type, platform, tile, cloudBelow],
    ...[bbox, area].map((one) => (one === undefined ? undefined : intersectsArea(one))),
    ...during('ContentDate/Start', flags.sensed),
    ...during('PublicationDate', published),
    ...during('DeletionDate', deleted === true ? undefined : deleted),
    ...(flags.name ?? []),
    written,
  ];
  return { entity, filter: allOf(terms.filter((term) => term !== undefined && term !== null)) };
}
