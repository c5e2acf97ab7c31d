/** Description of the OData service (CSDL XML 4.01) and its service document, as Excel and Power BI read them. */

import { type Expandable, expandable, recordProperties } from '../../filter/fields.ts';
import { attributeKinds, type Entity, entities } from '../../filter/filter-tree.ts';

/** Path of the description, relative to the service. */
export const metadataName = '$metadata';

/** Type of the entities of a set. */
const typeOf: Readonly<Record<Entity, string>> = {
  Products: 'Product',
  DeletedProducts: 'DeletedProduct',
};

type Fields = readonly (readonly [name: string, type: string])[];

/** Parts of a record. */
const complexTypes: Readonly<Record<string, Fields>> = {
  Checksum: [
    ['Value', 'Edm.String'],
    ['Algorithm', 'Edm.String'],
    ['ChecksumDate', 'Edm.DateTimeOffset'],
  ],
  TimeRange: [
    ['Start', 'Edm.DateTimeOffset'],
    ['End', 'Edm.DateTimeOffset'],
  ],
};

/** Parts of a record that `$expand` adds. The first field is unique in a record. */
const partTypes: Readonly<Record<Expandable, { name: string; fields: Fields }>> = {
  Attributes: {
    name: 'Attribute',
    fields: [
      ['Name', 'Edm.String'],
      ['ValueType', 'Edm.String'],
    ],
  },
  Assets: {
    name: 'Asset',
    fields: [
      ['Id', 'Edm.Guid'],
      ['Type', 'Edm.String'],
      ['DownloadLink', 'Edm.String'],
      ['S3Path', 'Edm.String'],
    ],
  },
  Locations: {
    name: 'Location',
    fields: [
      ['FormatType', 'Edm.String'],
      ['DownloadLink', 'Edm.String'],
      ['ContentLength', 'Edm.Int64'],
      ['Checksum', 'Collection(OData.CSC.Checksum)'],
      ['S3Path', 'Edm.String'],
      ['EvictionDate', 'Edm.String'],
    ],
  },
};

/** Kinds of attributes that are not types of CSDL. */
const valueTypes: Readonly<Record<string, string>> = { Integer: 'Int64' };

const properties = (fields: Fields, key?: string) =>
  fields.map(
    ([name, type]) =>
      `<Property Name="${name}" Type="${type}"${name === key ? ' Nullable="false"' : ''}/>`,
  );

/** Types are open: the catalogue may add properties. */
function entityType(name: string, fields: Fields, rest: readonly string[] = [], flags = '') {
  const [[key] = ['']] = fields;
  return [
    `<EntityType Name="${name}" OpenType="true"${flags}><Key><PropertyRef Name="${key}"/></Key>`,
    ...properties(fields, key),
    ...rest,
    '</EntityType>',
  ];
}

function typeOfSet(entity: Entity): string[] {
  const fields = recordProperties.filter(([, , own]) => own.includes(entity));
  const parts = expandable[entity].map(
    (part) =>
      `<NavigationProperty Name="${part}" Type="Collection(OData.CSC.${partTypes[part].name})" ContainsTarget="true"/>`,
  );
  const own = fields.map(([name, type]) => [name, type] as const);
  return entityType(typeOf[entity], own, parts, ' HasStream="true"');
}

/** Returns the description. */
export function metadataXml(): string {
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<edmx:Edmx Version="4.0" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx"><edmx:DataServices>',
    '<Schema Namespace="OData.CSC" xmlns="http://docs.oasis-open.org/odata/ns/edm">',
    ...Object.entries(complexTypes).flatMap(([name, fields]) => [
      `<ComplexType Name="${name}">`,
      ...properties(fields),
      '</ComplexType>',
    ]),
    ...Object.values(partTypes).flatMap(({ name, fields }) => entityType(name, fields)),
    ...attributeKinds.map(
      (kind) =>
        `<EntityType Name="${kind}Attribute" BaseType="OData.CSC.Attribute" OpenType="true"><Property Name="Value" Type="Edm.${valueTypes[kind] ?? kind}"/></EntityType>`,
    ),
    ...entities.flatMap(typeOfSet),
    '<EntityContainer Name="Container">',
    ...entities.map(
      (entity) => `<EntitySet Name="${entity}" EntityType="OData.CSC.${typeOf[entity]}"/>`,
    ),
    '</EntityContainer></Schema></edmx:DataServices></edmx:Edmx>',
  ].join('\n');
}

/** Returns the service document of a service whose URL ends with a slash. */
export function serviceDocument(root: string): object {
  return {
    '@odata.context': `${root}${metadataName}`,
    value: entities.map((name) => ({ name, kind: 'EntitySet', url: name })),
  };
}
