/** What each entity set of the catalogue can be asked for: properties and expansions. */
import type { Entity } from '../../domain/filter-tree.ts';

/** Parts of a record that are left out unless `$expand` names them. */
export const expandables = ['Attributes', 'Assets', 'Locations'] as const;
export type Expandable = (typeof expandables)[number];

export interface EntityProperties {
  /** What `$select` may name, as the records spell it. */
  readonly selectable: readonly string[];
  readonly expandable: readonly Expandable[];
}

/** Public clients send the same lists, read off the service (facts, filters 1 and 3). */
export const entityProperties: Readonly<Record<Entity, EntityProperties>> = {
  Products: {
    selectable: [
      'Id',
      'Name',
      'ContentType',
      'ContentLength',
      'OriginDate',
      'PublicationDate',
      'ModificationDate',
      'Online',
      'EvictionDate',
      'S3Path',
      'Checksum',
      'ContentDate',
      'Footprint',
      'GeoFootprint',
    ],
    expandable: ['Attributes', 'Assets', 'Locations'],
  },
  DeletedProducts: {
    selectable: [
      'Id',
      'Name',
      'ContentType',
      'ContentLength',
      'OriginDate',
      'DeletionDate',
      'DeletionCause',
      'Checksum',
      'ContentDate',
      'Footprint',
      'GeoFootprint',
    ],
    expandable: ['Attributes'],
  },
};
