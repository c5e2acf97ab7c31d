/** What to write instead of forms and names that the language does not have: slips, the retired hub's, other services'. */
import type { Entity } from '../domain/filter-tree.ts';
import { nearestName } from '../domain/text.ts';
import {
  fieldsOf,
  incomparableFields,
  type PublishedAttribute,
  publishedAttributes,
} from './fields.ts';
import { type Fault, named, type Span } from './finding.ts';
import { attributeForm } from './print.ts';

/** A table's own entry: names such as `constructor` are in none. */
export function entryOf(table: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

const place = "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51,4 50))')";

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
  const own = entryOf(retired, name.toLowerCase());
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
  return { code, message, hint: entryOf(functions, key) };
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

/** Parts of a product's record that no documented filter names (facts, filters 1). */
export const recordOnlyField =
  /^(?:contenttype|contentlength|evictiondate|s3path|checksum|assets|locations|geofootprint)$/i;

/** Fields of the catalogue's Bursts, an entity of its own. */
const burstField =
  /^(?:burstid|absoluteburstid|swathidentifier|parentproductname|parentproductid|parentproducttype|polarisationchannels|azimuthtime|azimuthanxtime|datatakeid|byteoffset|lines|linesperburst|samplesperburst)$/i;

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
  const path = entryOf(paths, lower);
  if (path !== undefined) return `Did you mean ${path}?`;
  const bare = lower.replace(/^attributes\//, '');
  const published = entryOf(formerNames, bare) ?? bare;
  const attribute = publishedAttributes.find((one) => one.name.toLowerCase() === published);
  if (attribute !== undefined) return `It is an attribute: ${conditionOn(attribute)}`;
  const retired = retiredFieldHint(name);
  if (retired !== undefined) return retired;
  if (burstField.test(name)) return 'It is a field of Bursts, which cannot be subscribed to.';
  const known = [...fieldsOf(entity).map((one) => one.name), ...incomparableFields];
  const nearest = nearestName(name, known);
  return nearest === null ? null : `Did you mean ${nearest}?`;
}

/** A form whose meaning is plain, though nothing shows that the catalogue accepts it. */
export function undocumentedForm(what: string, hint: string): Fault {
  const message = `${what} Accepted here; the catalogue's answer is not known.`;
  return { code: 'undocumented-form', message, hint };
}

/** An operator that works here, though nothing shows that the catalogue has it. */
export function undocumentedOperator(operator: 'ne' | 'in', hint: string): Fault {
  const message = `\`${operator}\` is not in the catalogue's documentation; it may be refused.`;
  return { code: 'undocumented-operator', message, hint };
}

/** What to write for `in`. */
export const insteadOfIn = 'Write comparisons with `eq`, joined by `or`.';

/** Operators of other languages, and what they are called here. */
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

/** A token as it stands in the text. */
interface UnexpectedToken extends Span {
  readonly kind: string;
  readonly raw: string;
}

/** The finding for a token that cannot stand where it stands; `fault` is what is known of the place. */
export function describeUnexpected(
  text: string,
  token: UnexpectedToken,
  fault: Partial<Fault>,
): Fault {
  const slip = operatorFault(text, token) ?? (token.kind === 'odd' ? oddFault(text, token) : null);
  const message =
    token.kind === 'end' ? 'The filter ends too early.' : `${named(token.raw)} cannot stand here.`;
  return { code: 'unexpected', message, ...fault, ...slip };
}

function operatorFault(text: string, token: UnexpectedToken): Fault | null {
  const word = entryOf(operators, token.raw);
  if (word !== undefined) {
    const message = `${named(token.raw)} is not an operator of the filter language.`;
    return { code: 'wrong-operator', message, hint: `Write \`${word}\`.` };
  }
  if (token.raw !== '&') return null;
  // The filter was cut out of a URL, together with the option after it.
  if (/^&\s*\$?\w+=/.test(text.slice(token.start, token.start + 40))) {
    const message = 'Another query option begins here.';
    return { code: 'not-a-filter', message, hint: 'Leave out all that follows the filter.' };
  }
  const message = '`&` is not an operator of the filter language.';
  return { code: 'wrong-operator', message, hint: 'Write `and`.' };
}

function oddFault(text: string, token: UnexpectedToken): Fault {
  const { raw } = token;
  if (raw === "'") {
    const hint = 'Close it with another. A quote inside a text is doubled.';
    return { code: 'unclosed-text', message: 'This quote is never closed.', hint };
  }
  if (/^["“”‘’`´]/.test(raw)) return quotesFault(raw);
  if (/^(?:%.+|\+)$/s.test(raw)) {
    const message = `${named(raw)} belongs to a URL: the filter is still encoded.`;
    const hint = 'Decode it first: %20 is a blank, %27 a quote.';
    return { code: 'not-a-filter', message, hint };
  }
  if (/^[[\]{}]$/.test(raw)) {
    const hint = 'Ranges are two conditions, `ge` and `le`, joined by `and`.';
    return { code: 'wrong-character', message: `${named(raw)} cannot stand here.`, hint };
  }
  if (raw === ';') {
    const message = 'A filter ends without a semicolon.';
    return { code: 'wrong-character', message, hint: 'Leave it out.' };
  }
  return characterFault(text, token);
}

function quotesFault(raw: string): Fault {
  const inner = raw.slice(1, raw.length > 1 ? -1 : undefined).replaceAll("'", "''");
  const message = `Texts stand in single quotes, not in ${raw[0]}.`;
  const hint = raw.length > 1 ? `Write ${named(`'${inner}'`)}.` : "Write '.";
  return { code: 'wrong-quotes', message, hint };
}

function characterFault(text: string, token: UnexpectedToken): Fault {
  const code = text.codePointAt(token.start) ?? 0;
  const unicode = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  if (/^[\p{White_Space}\p{Cf}]/u.test(token.raw)) {
    const message = `An invisible character (${unicode}) stands here that is no plain blank.`;
    return { code: 'wrong-character', message, hint: 'Put a plain blank in its place.' };
  }
  const shown = token.raw.length > 1 || code > 32 ? named(token.raw) : unicode;
  return { code: 'wrong-character', message: `${shown} cannot stand here.` };
}
