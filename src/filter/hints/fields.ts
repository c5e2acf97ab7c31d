/** What to write instead of a field that an entity does not have. */
import type { Entity } from '../../domain/filter-tree.ts';
import { type PublishedAttribute, publishedAttributes } from '../attribute-names.ts';
import { fieldsOf, incomparableFields } from '../fields.ts';
import { nearestName } from './nearest-name.ts';
import { retiredFieldHint } from './retired.ts';

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
