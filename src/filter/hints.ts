/** Hints for unsupported forms and names: common mistakes, and those of the retired hub and of other services. */
import type { Entity } from '../domain/filter-tree.ts';
import { nearestName } from '../domain/text.ts';
import {
  fieldsOf,
  incomparableFields,
  type PublishedAttribute,
  publishedAttributes,
} from './fields.ts';
import { type Fault, quoted, type Span } from './finding.ts';
import { attributeForm } from './print.ts';

/** Returns a table's own entry; ignores inherited names such as `constructor`. */
export function entryOf(table: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

const intersectsExample =
  "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51,4 50))')";

/** OpenSearch keywords and OData properties of the retired hub, in lower case. */
const retired: Readonly<Record<string, string>> = {
  platformname: "Collection/Name eq 'SENTINEL-2'",
  ingestiondate: 'PublicationDate gt 2024-05-01T00:00:00Z',
  creationdate: 'PublicationDate gt 2024-05-01T00:00:00Z',
  beginposition: 'ContentDate/Start ge 2024-05-01T00:00:00Z',
  endposition: 'ContentDate/End lt 2024-05-02T00:00:00Z',
  contentgeometry: intersectsExample,
  footprint: intersectsExample,
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

/** Hint for a property or keyword of the retired hub; undefined for other names. */
function retiredFieldHint(name: string): string | undefined {
  const own = entryOf(retired, name.toLowerCase());
  return own === undefined ? undefined : `Write ${own}`;
}

/** Fault for `keyword:value`, the form of OpenSearch. */
export function openSearchFault(keyword: string): Fault {
  const message = `${quoted(`${keyword}:`)} is OpenSearch syntax of the former Copernicus hub.`;
  const hint = retiredFieldHint(keyword) ?? 'Write a property, an operator and a literal.';
  return { code: 'retired-form', message, hint };
}

const functions: Readonly<Record<string, string>> = {
  substringof: "Write contains(Name,'…'): the property comes first.",
  indexof: "Write contains(Name,'…').",
  like: "Write contains(Name,'…').",
  matchespattern: "Write contains(Name,'…').",
  tolower: 'Strings are compared exactly: write the published spelling.',
  toupper: 'Strings are compared exactly: write the published spelling.',
  trim: 'Strings are compared exactly: write the published spelling.',
  date: 'Write a range of dates: ContentDate/Start ge 2024-05-01 and ContentDate/Start lt 2024-05-02',
  now: 'Write a date literal such as 2024-05-01T00:00:00Z.',
  any: 'Write Attributes/OData.CSC.StringAttribute/any(…).',
};

const dateParts = /^(?:year|month|day|hour|minute|second)$/;

/** Fault for a function that the catalogue does not have. */
export function functionFault(name: string): Fault {
  const key = name.toLowerCase();
  const message = `${quoted(name)} is not a function of the filter language.`;
  if (dateParts.test(key)) {
    const hint =
      'Write a range of dates: ContentDate/Start ge 2024-01-01 and ContentDate/Start lt 2025-01-01';
    return { code: 'unknown-function', message, hint };
  }
  if (/(?:^|\.)intersects$/.test(key)) {
    return { code: 'unknown-function', message, hint: `Write ${intersectsExample}` };
  }
  if (/^(?:and|or|not|eq|ne|lt|le|gt|ge|in)$/.test(key)) {
    return { code: 'missing-condition', message: `A condition is missing before ${quoted(name)}.` };
  }
  const code = key === 'substringof' ? 'retired-form' : 'unknown-function';
  return { code, message, hint: entryOf(functions, key) };
}

/** Fault for text before the filter, such as `$filter=`; null without one. */
export function wrappingFault(text: string): (Fault & Span) | null {
  const [prefix] = /^\s*(?:https?:\S*[?&])?[?&]?\$?filter\s*=/i.exec(text.slice(0, 300)) ?? [];
  if (prefix === undefined) return null;
  const start = prefix.length - prefix.trimStart().length;
  const message = 'Remove the name of the query option; it is not part of the filter.';
  const hint = `Remove ${quoted(prefix.trim())}.`;
  return { code: 'not-a-filter', message, hint, start, end: prefix.length };
}

/** Properties of product records that no documented filter uses (facts, filters 1). */
export const recordOnlyField =
  /^(?:contenttype|contentlength|evictiondate|s3path|checksum|assets|locations|geofootprint)$/i;

/** Properties of the separate entity Bursts. */
const burstField =
  /^(?:burstid|absoluteburstid|swathidentifier|parentproductname|parentproductid|parentproducttype|polarisationchannels|azimuthtime|azimuthanxtime|datatakeid|byteoffset|lines|linesperburst|samplesperburst)$/i;

/** Corrections of common property paths, in lower case. */
const paths: Readonly<Record<string, string>> = {
  contentdate: 'ContentDate/Start or ContentDate/End',
  'contentdate/begin': 'ContentDate/Start',
  'contentdate/stop': 'ContentDate/End',
  collection: 'Collection/Name',
  collectionname: 'Collection/Name',
  startdate: 'ContentDate/Start',
  enddate: 'ContentDate/End',
};

/** The similar property of the other entity, in published spelling. */
const counterparts: Readonly<Record<string, string>> = {
  PublicationDate: 'DeletionDate',
  ModificationDate: 'DeletionDate',
  DeletionDate: 'PublicationDate',
};

/** Hint for a property of the other entity; null if there is no similar one. */
export function counterpartHint(name: string): string | null {
  const own = counterparts[name];
  return own === undefined ? null : `Use the similar property ${own}.`;
}

/** Attribute names of the retired hub and their current names, in lower case. */
const formerNames: Readonly<Record<string, string>> = {
  cloudcoverpercentage: 'cloudcover',
  polarisationmode: 'polarisationchannels',
  sensoroperationalmode: 'operationalmode',
};

/** Hint for a property of neither entity; null without a suggestion. `conditionOn` rewrites the condition for an attribute. */
export function unknownFieldHint(
  entity: Entity,
  name: string,
  conditionOn: (attribute: PublishedAttribute) => string,
): string | null {
  const lower = name.toLowerCase();
  const path = entryOf(paths, lower);
  if (path !== undefined) return `Did you mean ${path}?`;
  const bare = lower.replace(/^attributes\//, '');
  const published = entryOf(formerNames, bare) ?? bare;
  const attribute = publishedAttributes.find((one) => one.name.toLowerCase() === published);
  if (attribute !== undefined) return `This name is an attribute: ${conditionOn(attribute)}`;
  const retired = retiredFieldHint(name);
  if (retired !== undefined) return retired;
  if (burstField.test(name))
    return 'This is a property of Bursts. Subscriptions do not support Bursts.';
  const known = [...fieldsOf(entity).map((one) => one.name), ...incomparableFields];
  const nearest = nearestName(name, known);
  return nearest === null ? null : `Did you mean ${nearest}?`;
}

export const acceptedOnlyHere = 'earshot accepts the condition; the catalogue may refuse it.';

/** Warning for a form with a clear meaning that the catalogue may not accept. */
export function undocumentedForm(problem: string, hint: string): Fault {
  const message = `${problem} ${acceptedOnlyHere}`;
  return { code: 'undocumented-form', message, hint };
}

/** Warning for an operator that the catalogue may not accept. */
export function undocumentedOperator(operator: 'ne' | 'in', hint: string): Fault {
  const message = `The catalogue does not document \`${operator}\` and may refuse it.`;
  return { code: 'undocumented-operator', message, hint };
}

/** Hint for `in`. */
export const insteadOfIn = 'Write comparisons with `eq`, joined by `or`.';

/** Operators of other languages, and the equivalents in OData. */
const operators: Readonly<Record<string, string>> = {
  '=': 'eq',
  '==': 'eq',
  '!=': 'ne',
  '<>': 'ne',
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
  '&&': 'and',
  '||': 'or',
  '|': 'or',
  '!': 'not',
};

interface UnexpectedToken extends Span {
  readonly kind: string;
  readonly raw: string;
}

/** Returns the fault for an unexpected token; `fault` is what the parser knows about the position. */
export function describeUnexpected(
  text: string,
  token: UnexpectedToken,
  fault: Partial<Fault>,
): Fault {
  const mistake =
    operatorFault(text, token) ?? (token.kind === 'odd' ? oddFault(text, token) : null);
  const message =
    token.kind === 'end' ? 'Unexpected end of the filter.' : `Unexpected ${quoted(token.raw)}.`;
  return { code: 'unexpected', message, ...fault, ...mistake };
}

function operatorFault(text: string, token: UnexpectedToken): Fault | null {
  const word = entryOf(operators, token.raw);
  if (word !== undefined) {
    const message = `${quoted(token.raw)} is not an operator of the filter language.`;
    return { code: 'wrong-operator', message, hint: `Write \`${word}\`.` };
  }
  if (token.raw !== '&') return null;
  // The filter was copied from a URL, together with the next option.
  if (/^&\s*\$?\w+=/.test(text.slice(token.start, token.start + 40))) {
    const message = 'Another query option starts here.';
    return { code: 'not-a-filter', message, hint: 'Remove everything after the filter.' };
  }
  const message = '`&` is not an operator of the filter language.';
  return { code: 'wrong-operator', message, hint: 'Write `and`.' };
}

function oddFault(text: string, token: UnexpectedToken): Fault {
  const { raw } = token;
  if (raw === "'") {
    const hint = 'Add the closing quote. Inside a string, write two single quotes for one quote.';
    return { code: 'unclosed-text', message: 'The string is not closed.', hint };
  }
  if (/^["“”‘’`´]/.test(raw)) return quotesFault(raw);
  if (/^(?:%.+|\+)$/s.test(raw)) {
    const message = `${quoted(raw)} is URL encoding; the filter must be decoded.`;
    const hint = 'Decode it: %20 is a space, %27 a quote.';
    return { code: 'not-a-filter', message, hint };
  }
  if (/^[[\]{}]$/.test(raw)) {
    const hint = 'Write a range as two conditions, `ge` and `le`, joined by `and`.';
    return { code: 'wrong-character', message: `Unexpected ${quoted(raw)}.`, hint };
  }
  if (raw === ';') {
    const message = 'A filter has no semicolon at the end.';
    return { code: 'wrong-character', message, hint: 'Remove it.' };
  }
  return characterFault(text, token);
}

function quotesFault(raw: string): Fault {
  const inner = raw.slice(1, raw.length > 1 ? -1 : undefined).replaceAll("'", "''");
  const message = `Strings need single quotes, not ${raw[0]}.`;
  const hint = raw.length > 1 ? `Write ${quoted(`'${inner}'`)}.` : "Write '.";
  return { code: 'wrong-quotes', message, hint };
}

function characterFault(text: string, token: UnexpectedToken): Fault {
  const code = text.codePointAt(token.start) ?? 0;
  const unicode = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  if (/^[\p{White_Space}\p{Cf}]/u.test(token.raw)) {
    const message = `Invisible character ${unicode}.`;
    return { code: 'wrong-character', message, hint: 'Replace it with a space, or remove it.' };
  }
  const shown = token.raw.length > 1 || code > 32 ? quoted(token.raw) : unicode;
  return { code: 'wrong-character', message: `Unexpected ${shown}.` };
}
