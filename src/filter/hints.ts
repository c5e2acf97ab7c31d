/** Forms of the retired hub (OData 2, OpenSearch) and of other services, and what to write instead. */

import type { Entity } from '../domain/filter-tree.ts';
import { type Fault, named } from './cursor.ts';
import {
  fieldsOf,
  incomparableFields,
  type PublishedAttribute,
  publishedAttributes,
} from './fields.ts';
import type { Span } from './finding.ts';
import { nearestName } from './nearest-name.ts';

const place = "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51,4 50))')";

/** A condition on an attribute. */
export function attributeForm(name: string, kind: string, value: string, operator = 'eq'): string {
  const prefix = `OData.CSC.${kind}Attribute`;
  return `Attributes/${prefix}/any(att:att/Name eq '${name}' and att/${prefix}/Value ${operator} ${value})`;
}

/** Keywords of the hub's OpenSearch, and fields of its OData, in small letters. */
const retired: Readonly<Record<string, string>> = {
  platformname: "Collection/Name eq 'SENTINEL-2'",
  ingestiondate: 'PublicationDate gt 2024-05-01T00:00:00Z',
  creationdate: 'PublicationDate gt 2024-05-01T00:00:00Z',
  beginposition: 'ContentDate/Start ge 2024-05-01T00:00:00Z',
  endposition: 'ContentDate/End lt 2024-05-02T00:00:00Z',
  contentgeometry: place,
  footprint: place,
  filename: "startswith(Name,'S2A_')",
  identifier: "startswith(Name,'S2A_')",
  uuid: "Id eq '00000000-0000-0000-0000-000000000000'",
  producttype: attributeForm('productType', 'String', "'S2MSI2A'"),
  cloudcoverpercentage: attributeForm('cloudCover', 'Double', '20', 'lt'),
  orbitdirection: attributeForm('orbitDirection', 'String', "'ASCENDING'"),
  orbitnumber: attributeForm('orbitNumber', 'Integer', '12345'),
  relativeorbitnumber: attributeForm('relativeOrbitNumber', 'Integer', '51'),
  polarisationmode: attributeForm('polarisationChannels', 'String', "'VV&VH'"),
  sensoroperationalmode: attributeForm('operationalMode', 'String', "'IW'"),
  swathidentifier: attributeForm('swathIdentifier', 'String', "'IW'"),
  timeliness: attributeForm('timeliness', 'String', "'NRT-3h'"),
  processinglevel: attributeForm('processingLevel', 'String', "'S2MSI2A'"),
  processingbaseline: attributeForm('processingBaseline', 'String', "'05.11'"),
  platformserialidentifier: attributeForm('platformSerialIdentifier', 'String', "'A'"),
  tileid: attributeForm('tileId', 'String', "'32TQM'"),
};

/** What to write for a field or keyword of the retired hub; undefined when it is none. */
function retiredFieldHint(name: string): string | undefined {
  const key = name.toLowerCase();
  const own = Object.hasOwn(retired, key) ? retired[key] : undefined;
  return own === undefined ? undefined : `Write ${own}`;
}

/** For `keyword:value`, the form of OpenSearch. */
export function openSearchFault(keyword: string): Fault {
  const message = `${named(`${keyword}:`)} is the form of the retired hub's OpenSearch.`;
  const hint = retiredFieldHint(keyword) ?? 'Write the field, an operator and a value.';
  return { code: 'retired-form', message, hint };
}

const functions: Readonly<Record<string, string>> = {
  substringof: "Write contains(Name,'…'): the field comes first.",
  indexof: "Write contains(Name,'…').",
  like: "Write contains(Name,'…').",
  matchespattern: "Write contains(Name,'…').",
  tolower: 'Texts are compared as they are: write the published spelling.',
  toupper: 'Texts are compared as they are: write the published spelling.',
  trim: 'Texts are compared as they are: write the published spelling.',
  date: 'Write a range of dates: ContentDate/Start ge 2024-05-01 and ContentDate/Start lt 2024-05-02',
  now: 'Write the date itself, such as 2024-05-01T00:00:00Z.',
  any: 'Write Attributes/OData.CSC.StringAttribute/any(…).',
};

const dateParts = /^(?:year|month|day|hour|minute|second)$/;

/** For a function that the catalogue does not have. */
export function functionFault(name: string): Fault {
  const key = name.toLowerCase();
  const message = `${named(name)} is not a function of the filter language.`;
  if (dateParts.test(key)) {
    const hint =
      'Write a range of dates: ContentDate/Start ge 2024-01-01 and ContentDate/Start lt 2025-01-01';
    return { code: 'unknown-function', message, hint };
  }
  if (/(?:^|\.)intersects$/.test(key)) {
    return { code: 'unknown-function', message, hint: `Write ${place}` };
  }
  if (/^(?:and|or|not|eq|ne|lt|le|gt|ge|in)$/.test(key)) {
    return { code: 'missing-condition', message: `A condition is missing before ${named(name)}.` };
  }
  const code = key === 'substringof' ? 'retired-form' : 'unknown-function';
  const hint = Object.hasOwn(functions, key) ? functions[key] : undefined;
  return hint === undefined ? { code, message } : { code, message, hint };
}

/** Something that stands before or around the filter, and is no part of it. */
export function wrappingFault(text: string): (Fault & Span) | null {
  const [prefix] = /^\s*(?:https?:\S*[?&])?[?&]?\$?filter\s*=/i.exec(text.slice(0, 300)) ?? [];
  if (prefix === undefined) return null;
  const start = prefix.length - prefix.trimStart().length;
  const message = 'A filter begins without the name of the query option.';
  const hint = `Leave out ${named(prefix.trim())}.`;
  return { code: 'not-a-filter', message, hint, start, end: prefix.length };
}

/** Parts of a product's record that no documented filter names, in small letters (facts, filters 1). */
export const recordOnlyFields: ReadonlySet<string> = new Set([
  'contenttype',
  'contentlength',
  'evictiondate',
  's3path',
  'checksum',
  'assets',
  'locations',
  'geofootprint',
]);

/** Fields of the catalogue's Bursts, an entity of its own, in small letters. */
const burstFields = new Set([
  'burstid',
  'absoluteburstid',
  'swathidentifier',
  'parentproductname',
  'parentproductid',
  'parentproducttype',
  'polarisationchannels',
  'azimuthtime',
  'azimuthanxtime',
  'datatakeid',
  'byteoffset',
  'lines',
  'linesperburst',
  'samplesperburst',
]);

/** Paths that are nearly right, in small letters. */
const paths: Readonly<Record<string, string>> = {
  contentdate: 'ContentDate/Start or ContentDate/End',
  'contentdate/begin': 'ContentDate/Start',
  'contentdate/stop': 'ContentDate/End',
  collection: 'Collection/Name',
  collectionname: 'Collection/Name',
  startdate: 'ContentDate/Start',
  enddate: 'ContentDate/End',
};

/** The field of the one entity that says what the other's says, in published spelling. */
const counterparts: Readonly<Record<string, string>> = {
  PublicationDate: 'DeletionDate',
  ModificationDate: 'DeletionDate',
  DeletionDate: 'PublicationDate',
};

/** For a field of the other entity; null when there is nothing like it. */
export function counterpartHint(name: string): string | null {
  const own = counterparts[name];
  return own === undefined ? null : `${own} is the nearest field here.`;
}

/** Attributes under the name that the retired hub had for them, in small letters. */
const formerNames: Readonly<Record<string, string>> = {
  cloudcoverpercentage: 'cloudcover',
  polarisationmode: 'polarisationchannels',
  sensoroperationalmode: 'operationalmode',
};

/** For a field of neither entity; null when nothing is near. `conditionOn` writes the user's condition for an attribute. */
export function unknownFieldHint(
  entity: Entity,
  name: string,
  conditionOn: (attribute: PublishedAttribute) => string,
): string | null {
  const lower = name.toLowerCase();
  const path = Object.hasOwn(paths, lower) ? paths[lower] : undefined;
  if (path !== undefined) return `Did you mean ${path}?`;
  const attribute = attributeOf(lower.replace(/^attributes\//, ''));
  if (attribute !== undefined) return `It is an attribute: ${conditionOn(attribute)}`;
  const retired = retiredFieldHint(name);
  if (retired !== undefined) return retired;
  if (burstFields.has(lower)) return 'It is a field of Bursts, which cannot be subscribed to.';
  const known = [...fieldsOf(entity).map((one) => one.name), ...incomparableFields];
  const nearest = nearestName(name, known);
  return nearest === null ? null : `Did you mean ${nearest}?`;
}

function attributeOf(lower: string): PublishedAttribute | undefined {
  const name = Object.hasOwn(formerNames, lower) ? formerNames[lower] : lower;
  return publishedAttributes.find((one) => one.name.toLowerCase() === name);
}
