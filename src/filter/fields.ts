/** Missions, properties and attributes of the catalogue (facts, filters 1 and 2). */

import { type AttributeKind, attributeKinds, type Entity, entities } from './filter-tree.ts';

/** A mission of the catalogue. All lists of collections, satellites and prefixes of names derive from one table. */
interface Mission {
  /** Collection of the catalogue. */
  readonly collection: string;
  /** Name in texts; null if it is not known. */
  readonly title: string | null;
  /** `letter`: each satellite has a letter, as in SENTINEL-1A. `one`: the collection is a satellite. */
  readonly satellite?: 'letter' | 'one';
  /** Prefix of product names (documentation of each mission's file names). Its group is the letter of the satellite. */
  readonly names?: RegExp;
  /** Abbreviation in the table of published attributes. */
  readonly code?: string;
  /** Products have the platform of another mission, so the folder decides. */
  readonly isDerived?: true;
  readonly isRadar?: true;
  /** Group with a colour of its own on the map; names of its collections start with it. */
  readonly group?: string;
}

const sentinel = (number: 1 | 2 | 3 | 6, names: RegExp): Mission => ({
  collection: `SENTINEL-${number}`,
  title: `Sentinel-${number}`,
  satellite: 'letter',
  names,
  code: `S${number}`,
  group: `SENTINEL-${number}`,
});

const landsat = (number: number, names: RegExp): Mission => ({
  collection: `LANDSAT-${number}`,
  title: `Landsat-${number}`,
  satellite: 'one',
  names,
  code: `L${number}`,
  group: 'LANDSAT',
});

/** Sources: the published attributes; eu-cdse/documentation, APIs/OData.qmd; facts, catalogue 7. */
const missions: readonly Mission[] = [
  { ...sentinel(1, /^S1([A-Z_])_/), isRadar: true },
  {
    ...{ collection: 'SENTINEL-1-RTC', title: 'Sentinel-1 RTC', code: 'S1RTC' },
    ...{ isDerived: true, isRadar: true },
  },
  sentinel(2, /^S2([A-Z_])_/),
  sentinel(3, /^S3([A-Z_])_/),
  {
    ...{ collection: 'SENTINEL-5P', title: 'Sentinel-5P', satellite: 'one' },
    ...{ names: /^S5P_/, code: 'S5P', group: 'SENTINEL-5P' },
  },
  sentinel(6, /^S6([A-Z_])_/),
  {
    ...{ collection: 'ENVISAT', title: 'Envisat', satellite: 'one', code: 'ENV' },
    names: /^(?:ENV_|(?:ASA|MER|ATS|SCI|GOM|MIP|RA2|MWR|DOR)_[A-Z0-9_]{6}_?[A-Z0-9]{4})/,
  },
  landsat(5, /^LT05_/),
  landsat(7, /^LE07_/),
  landsat(8, /^L[COT]08_/),
  landsat(9, /^L[COT]09_/),
  { collection: 'LANDSAT-8-ESA', title: null },
  { collection: 'SMOS', title: 'SMOS', satellite: 'one', names: /^SM_[A-Z]{4}_/ },
  { collection: 'CCM', title: 'CCM' },
  { collection: 'CLMS', title: 'CLMS', group: 'CLMS' },
  { collection: 'GLOBAL-MOSAICS', title: 'Global Mosaics', isDerived: true },
  { collection: 'TERRA', title: 'Terra', satellite: 'one' },
  { collection: 'AQUA', title: 'Aqua', satellite: 'one' },
  { collection: 'TERRAAQUA', title: null },
  { collection: 'COP-DEM', title: null },
  { collection: 'S2GLC', title: null },
];

const byCollection = new Map(missions.map((mission) => [mission.collection, mission]));

/** Known collections; others may exist. */
export const publishedCollections: readonly string[] = [...byCollection.keys()];

export const radarCollections: readonly string[] = missions.flatMap(({ isRadar, collection }) =>
  isRadar ? [collection] : [],
);

/** Groups of collections with a colour of their own on the map. */
export const collectionGroups: readonly string[] = [
  ...new Set(missions.flatMap(({ group }) => group ?? [])),
];

/** Finds a mission by its collection or platform, in any case. */
export function findMission(name: string | null | undefined): Mission | null {
  return byCollection.get(name?.trim().toUpperCase() ?? '') ?? null;
}

/** Returns the collection and the satellite of a product name; null for an unknown prefix. */
export function missionOfName(name: string): { collection: string; satellite: string } | null {
  for (const { collection, names } of missions) {
    const match = names?.exec(name);
    if (!match) continue;
    // Auxiliary files for all satellites have `_`.
    return { collection, satellite: `${collection}${(match[1] ?? '').replace('_', '')}` };
  }
  return null;
}

/**
 * Returns the satellite of a product, or its mission: from the attributes, completed from the name, else from the
 * collection. Null if none is known.
 */
export function satelliteOf(product: {
  platformName: string | null;
  platformSerial: string | null;
  productName: string | null;
  collection: string | null;
}): string | null {
  const { platformName, platformSerial, productName, collection } = product;
  const isKnown = platformSerial !== null && /^[A-Z0-9]+$/i.test(platformSerial);
  if (platformName !== null && isKnown) return `${platformName}${platformSerial}`;
  const named = missionOfName(productName ?? '');
  // Records of some satellites have a platform without a serial (facts, catalogue 7).
  if (platformName !== null) {
    return named?.collection === platformName.toUpperCase() ? named.satellite : platformName;
  }
  if (named !== null) return named.satellite;
  const mission = findMission(collection);
  return mission?.satellite === undefined ? null : mission.collection;
}

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
  const own = missions.filter(
    (one) => one.code === code || (code === 'L' && one.group === 'LANDSAT'),
  );
  return own.map(({ collection }) => collection);
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
    return { name, kind, collections: words.flatMap(collectionsOf) };
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

const commonProperties = [
  ...['Id', 'Name', 'ContentType', 'ContentLength', 'OriginDate', 'Checksum', 'ContentDate'],
  ...['Footprint', 'GeoFootprint'],
];

/** Properties of records that `$select` accepts; public clients send the same lists (facts, filters 1 and 3). */
export const selectable: Readonly<Record<Entity, readonly string[]>> = {
  Products: [
    ...commonProperties,
    ...['PublicationDate', 'ModificationDate', 'Online', 'EvictionDate', 'S3Path'],
  ],
  DeletedProducts: [...commonProperties, 'DeletionDate', 'DeletionCause'],
};
