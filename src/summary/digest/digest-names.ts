/** The names a digest may repeat: only of a narrow form, and the user's own cleaned and cut. */

import { readName } from '../../domain/naming/read-name.ts';
import { printable } from '../../domain/printable.ts';
import { subscriptionNamePattern } from '../../domain/subscription.ts';
import type { DigestScope } from '../../domain/summaries.ts';
import { unsafeReason } from '../check/unsafe-answer.ts';
import { contentOfType } from '../facts/attribute-words.ts';

export interface CleanScope {
  fromUs: number;
  untilUs: number;
  /** Null for all subscriptions together, '' for notifications to no name. */
  subscription: string | null;
  /** In words: `Sentinel-2`. Null for all, '' for what names of products tell no collection of. */
  collection: string | null;
  area: string | null;
  /** What the notifications had to match, unless an area says it: '' where its text is not to be shown. */
  filter: string | null;
}

const areaMax = 60;
const filterMax = 120;

/** Names are the user's own; they are bounded all the same, as a file may say anything. */
export function cleanScope(scope: DigestScope): CleanScope {
  const { fromUs, untilUs, subscription, collection, area, filter } = scope;
  const isName = subscription === null || subscriptionNamePattern.test(subscription);
  return {
    fromUs,
    untilUs,
    subscription: isName ? subscription : '',
    collection: collection === null ? null : (collectionInWords(collection) ?? ''),
    area: area === null ? null : cleanName(area),
    filter: filter === null || area !== null ? null : shownFilter(filter),
  };
}

/** As it is where it is short and plain, and an answer may repeat it; '' for any other. */
function shownFilter(filter: string): string {
  const text = filter.trim();
  const isPlain = text.length <= filterMax && /^[A-Za-z0-9 .,:;=+/()'_-]+$/.test(text);
  return isPlain && unsafeReason(text, 'digest') === null ? text : '';
}

/** One line of at most 60 characters, without marks that would end or dress a quotation. */
function cleanName(name: string): string {
  const oneLine = printable(name.slice(0, 10 * areaMax))
    .replaceAll(/[^\p{L}\p{M}\p{N} .,:;+&/()'_-]/gu, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
  return [...oneLine].slice(0, areaMax).join('').trim();
}

/** As people write it: `Sentinel-2` for SENTINEL-2; null for a name in no known form. */
export function collectionInWords(collection: string): string | null {
  if (collection === 'GLOBAL-MOSAICS') return 'Global Mosaics';
  if (collection === 'SENTINEL-1-RTC') return 'Sentinel-1 RTC';
  if (/^(SMOS|CCM|CLMS)$/.test(collection)) return collection;
  if (collection === 'ENVISAT') return 'Envisat';
  const [, mission, number] = /^(SENTINEL|LANDSAT)-([1-9]|5P)$/.exec(collection) ?? [];
  return mission === undefined ? null : `${mission[0]}${mission.slice(1).toLowerCase()}-${number}`;
}

/**
 * A product type whose content is known, such as `IW_GRDH_1S-COG`: the record's, else that of a name in a known
 * form; null for any other text. Without the `_` that fill it up, which a text that is read as Markdown loses.
 */
export function typeCode(productType: string | null, productName: string | null): string | null {
  const named = productName === null ? null : (readName(productName)?.type ?? null);
  const type = contentOfType(productType) === null ? named : productType;
  return type?.replace(/_+$/, '') ?? null;
}
