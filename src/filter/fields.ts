/** The fields of the catalogue's two entities, and what may be done with each (facts, filters 1). */
import { type Entity, entities } from '../domain/filter-tree.ts';

export type FieldType = 'text' | 'guid' | 'date' | 'boolean';

export interface Field {
  /** In its published spelling. */
  readonly name: string;
  readonly type: FieldType;
  /** Those that have it. */
  readonly entities: readonly Entity[];
}

const field = (name: string, type: FieldType, ...of: Entity[]): Field => ({
  name,
  type,
  entities: of.length === 0 ? entities : of,
});

const fields: readonly Field[] = [
  field('Name', 'text'),
  field('Id', 'guid'),
  field('Collection/Name', 'text'),
  field('ContentDate/Start', 'date'),
  field('ContentDate/End', 'date'),
  field('OriginDate', 'date'),
  field('PublicationDate', 'date', 'Products'),
  field('ModificationDate', 'date', 'Products'),
  field('Online', 'boolean', 'Products'),
  field('DeletionDate', 'date', 'DeletedProducts'),
  field('DeletionCause', 'text', 'DeletedProducts'),
];

const fieldByName = new Map(fields.map((one) => [one.name.toLowerCase(), one]));

/** Fields that have a form of condition of their own, and cannot be compared. */
export const incomparableFields = ['Attributes', 'Footprint'] as const;

/** A field of either entity by its name in any case. */
export function findField(name: string): Field | undefined {
  return fieldByName.get(name.toLowerCase());
}

/** The fields of an entity that can be compared. */
export function fieldsOf(entity: Entity): readonly Field[] {
  return fields.filter((one) => one.entities.includes(entity));
}

/** What `$orderby` takes (facts, filters 1). */
export const orderableFields = {
  Products: ['ContentDate/Start', 'ContentDate/End', 'PublicationDate', 'ModificationDate'],
  DeletedProducts: ['ContentDate/Start', 'ContentDate/End', 'DeletionDate'],
} as const satisfies Record<Entity, readonly string[]>;

export type OrderableField = (typeof orderableFields)[Entity][number];

/** A field that an entity can be ordered by, by its name in any case, in its published spelling. */
export function findOrderableField(entity: Entity, name: string): OrderableField | undefined {
  const lower = name.toLowerCase();
  return orderableFields[entity].find((one) => one.toLowerCase() === lower);
}
