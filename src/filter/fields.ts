/** Properties, attributes and collections of the catalogue (facts, filters 1 and 2). */

import { type AttributeKind, attributeKinds, type Entity, entities } from './filter-tree.ts';
import { collectionsByCode } from './missions.ts';

export type FieldType = 'text' | 'guid' | 'date' | 'boolean';

export interface Field {
  /** In its published spelling. */
  readonly name: string;
  readonly type: FieldType;
  /** Entities that have the property. */
  readonly entities: readonly Entity[];
}

const fields: readonly Field[] = [
  { name: 'Name', type: 'text', entities },
  { name: 'Id', type: 'guid', entities },
  { name: 'Collection/Name', type: 'text', entities },
  { name: 'ContentDate/Start', type: 'date', entities },
  { name: 'ContentDate/End', type: 'date', entities },
  { name: 'OriginDate', type: 'date', entities },
  { name: 'PublicationDate', type: 'date', entities: ['Products'] },
  { name: 'ModificationDate', type: 'date', entities: ['Products'] },
  { name: 'Online', type: 'boolean', entities: ['Products'] },
  { name: 'DeletionDate', type: 'date', entities: ['DeletedProducts'] },
  { name: 'DeletionCause', type: 'text', entities: ['DeletedProducts'] },
];

const fieldByName = new Map(fields.map((one) => [one.name.toLowerCase(), one]));

/** Finds a property of either entity by name, ignoring case. */
export function findField(name: string): Field | undefined {
  return fieldByName.get(name.toLowerCase());
}

/** Returns the properties of an entity that can be compared. */
export function fieldsOf(entity: Entity): readonly Field[] {
  return fields.filter((one) => one.entities.includes(entity));
}

/** Properties that `$orderby` accepts (facts, filters 1). */
export const orderableFields = {
  Products: ['ContentDate/Start', 'ContentDate/End', 'PublicationDate', 'ModificationDate'],
  DeletedProducts: ['ContentDate/Start', 'ContentDate/End', 'DeletionDate'],
} as const satisfies Record<Entity, readonly string[]>;

export type OrderableField = (typeof orderableFields)[Entity][number];

/** Finds a property for `$orderby` by name, ignoring case; returns the published spelling. */
export function findOrderableField(entity: Entity, name: string): OrderableField | undefined {
  const lower = name.toLowerCase();
  return orderableFields[entity].find((one) => one.toLowerCase() === lower);
}

/**
 * Type and collections of the published attributes: recorded responses of `GET /odata/v1/Attributes(<collection>)`, as
 * CDSETool/CDSETool stores them (src/cdsetool/_attributes.py, commit c4abbff33d). New attributes appear without notice,
 * and products of other collections have others: an unknown name causes a warning, never an error.
 */
const attributes = {
  USGScollection: 'String L8 L9',
  acquisitionType: 'String S5P',
  authority: 'String S1RTC S6 ENV L',
  baselineCollection: 'String S3 S5P',
  brightCover: 'Double S3',
  card4lSpecification: 'String L',
  card4lSpecificationVersion: 'String L',
  closedSeaCover: 'Integer S3',
  cloudCover: 'Double S2 S3 L',
  cloudCoverLand: 'Double L',
  coastalCover: 'Double S3',
  collectionCategory: 'String L',
  collectionName: 'String L5 L7',
  collectionNumber: 'String L',
  completionTimeFromAscendingNode: 'Double S1',
  continentalIceCover: 'Integer S3',
  coordinates: 'String S1 S2 S3 S5P',
  cycleNumber: 'Integer S1 S3 ENV',
  datastripId: 'String S2',
  datatakeID: 'Integer S1',
  doi: 'String S5P',
  freshInlandWaterCover: 'Double S3',
  geometricRmse: 'Double L',
  geometricXBias: 'Double L',
  geometricXStddev: 'Double L',
  geometricYBias: 'Double L',
  geometricYStddev: 'Double L',
  granuleIdentifier: 'String S2',
  identifier: 'String S5P',
  illuminationZenithAngle: 'Double S2',
  instrumentConfigurationID: 'Integer S1',
  instrumentShortName: 'String S1 S1RTC S2 S3 S5P S6 ENV L',
  landCover: 'Double S3',
  lastOrbitDirection: 'String S3',
  lastOrbitNumber: 'Integer S2 S3',
  lastRelativeOrbitNumber: 'Integer S3',
  numberOfBands: 'Integer L',
  offNadir: 'Double L',
  openOceanCover: 'Integer S3',
  operationalMode: 'String S1 S1RTC S2 S3 S6 L',
  orbitDirection: 'String S1 S1RTC S3',
  orbitNumber: 'Integer S1 S1RTC S2 S3 S5P S6 ENV L',
  origin: 'String S1 S2 S6',
  parentIdentifier: 'String S5P',
  pathNumber: 'Integer L',
  phaseNumber: 'Integer ENV',
  platformSerialIdentifier: 'String S1 S1RTC S2 S3 S5P S6',
  platformShortName: 'String S1 S1RTC S2 S3 S5P S6 ENV L',
  polarisationChannels: 'String S1 S1RTC',
  processingBaseline: 'String S1 S2 S3 S5P S6',
  processingCenter: 'String S1 S2 S3 S5P S6',
  processingDate: 'DateTimeOffset S1 S2 S3 S5P S6',
  processingLevel: 'String S1 S1RTC S2 S3 S5P S6 ENV L',
  processingMode: 'String S5P',
  processorName: 'String S1 S3 S5P',
  processorVersion: 'String S1 S2 S3 S5P S6',
  productClass: 'String S1 S5P',
  productComposition: 'String S1',
  productConsolidation: 'String S1',
  productGeneration: 'DateTimeOffset S1',
  productGroupId: 'String S2',
  productType: 'String S1 S1RTC S2 S3 S5P S6 ENV L',
  'proj:epsg': 'Integer L',
  projShape: 'String L',
  projTransform: 'String L',
  qualityInfo: 'Integer S2',
  qualityStatus: 'String S2 S5P',
  relativeOrbitNumber: 'Integer S1 S1RTC S2 S3 S6',
  rowNumber: 'Integer L',
  salineWaterCover: 'Double S3',
  sceneId: 'String L',
  segmentStartTime: 'DateTimeOffset S1',
  sliceNumber: 'Integer S1',
  sliceProductFlag: 'Boolean S1',
  snowOrIceCover: 'Double S3',
  source: 'String S6',
  sourceProduct: 'String S2',
  sourceProductOriginDate: 'String S2',
  spatialResolution: 'Integer S1RTC S6 ENV L',
  startTimeFromAscendingNode: 'Double S1',
  sunAzimuthAngle: 'Double L',
  sunElevationAngle: 'Double L',
  swathIdentifier: 'String S1',
  tidalRegionCover: 'Double S3',
  tileId: 'String S2',
  timeliness: 'String S1 S3 S6',
  totalSlices: 'Integer S1',
  'view:sun_azimuth': 'Double L',
  'view:sun_elevation': 'Double L',
  wrsPath: 'String L',
  wrsRow: 'String L',
  wrsType: 'String L',
} as const;

/** Name of a published attribute, for example `cloudCover`. */
export type PublishedName = keyof typeof attributes;

/** Type of a published attribute. */
export type KindOf<Name extends PublishedName> =
  (typeof attributes)[Name] extends `${infer Kind extends AttributeKind} ${string}` ? Kind : never;

/** Collections for an abbreviation in the table: `L` for all of Landsat. */
function collectionsOf(code: string): string[] {
  return [...collectionsByCode].flatMap(([one, collection]) =>
    one === code || (code === 'L' && /^L\d$/.test(one)) ? [collection] : [],
  );
}

export interface PublishedAttribute {
  readonly name: string;
  readonly kind: AttributeKind;
  /** Collections whose products have the attribute. */
  readonly collections: readonly string[];
}

export const publishedAttributes: readonly PublishedAttribute[] = Object.entries(attributes).map(
  ([name, entry]) => {
    const [kindName, ...words] = entry.split(' ');
    const kind = attributeKinds.find((one) => one === kindName) ?? 'String';
    return {
      name,
      kind,
      collections: words.flatMap(collectionsOf),
    };
  },
);

/** Published attributes of a collection, in the form of the response; null if none are known. */
export function attributesOf(collection: string) {
  const own = publishedAttributes.filter((one) => one.collections.includes(collection));
  return own.length === 0 ? null : own.map(({ name, kind }) => ({ Name: name, ValueType: kind }));
}

const attributeByName = new Map(publishedAttributes.map((one) => [one.name, one]));

/** Type of a published attribute; undefined for other names. Case-sensitive. */
export function attributeKindOf(name: string): AttributeKind | undefined {
  return attributeByName.get(name)?.kind;
}

/** Parts of a record that are returned only with `$expand`. */
export const expandables = ['Attributes', 'Assets', 'Locations'] as const;
export type Expandable = (typeof expandables)[number];

export const expandable: Readonly<Record<Entity, readonly Expandable[]>> = {
  Products: expandables,
  DeletedProducts: ['Attributes'],
};

/** Properties of records, as spelled there, with their types in CSDL and their entities. */
export const recordProperties: readonly (readonly [
  name: string,
  type: string,
  entities: readonly Entity[],
])[] = [
  ['Id', 'Edm.Guid', entities],
  ['Name', 'Edm.String', entities],
  ['ContentType', 'Edm.String', entities],
  ['ContentLength', 'Edm.Int64', entities],
  ['OriginDate', 'Edm.DateTimeOffset', entities],
  ['PublicationDate', 'Edm.DateTimeOffset', ['Products']],
  ['ModificationDate', 'Edm.DateTimeOffset', ['Products']],
  ['Online', 'Edm.Boolean', ['Products']],
  // An empty text in old records.
  ['EvictionDate', 'Edm.String', ['Products']],
  ['S3Path', 'Edm.String', ['Products']],
  ['Checksum', 'Collection(OData.CSC.Checksum)', entities],
  ['ContentDate', 'OData.CSC.TimeRange', entities],
  ['Footprint', 'Edm.String', entities],
  ['GeoFootprint', 'Edm.Geography', entities],
  ['DeletionDate', 'Edm.DateTimeOffset', ['DeletedProducts']],
  ['DeletionCause', 'Edm.String', ['DeletedProducts']],
];

const namesOf = (entity: Entity) =>
  recordProperties.filter(([, , own]) => own.includes(entity)).map(([name]) => name);

/** Properties that `$select` accepts; public clients send the same lists (facts, filters 1 and 3). */
export const selectable: Readonly<Record<Entity, readonly string[]>> = {
  Products: namesOf('Products'),
  DeletedProducts: namesOf('DeletedProducts'),
};
