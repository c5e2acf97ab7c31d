/** Forms of the retired hub (OData 2, OpenSearch) and of other services, and what to write instead. */
import type { Span } from '../finding.ts';
import { type Fault, named } from './unexpected.ts';

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
export function retiredFieldHint(name: string): string | undefined {
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
