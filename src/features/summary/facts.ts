/** Facts of a product as formatted values, null for implausible ones. Text of a record is only used in a narrow, known form. */
import { dayUs, secondUs } from '../../core/terms/dates.ts';
import { byteText, lengthText } from '../../core/terms/text.ts';
import { findMission, missionOfName } from '../../filter/fields.ts';
import { parseProductName } from '../../filter/product-name.ts';
import { productView } from '../../filter/product-view.ts';
import type { FoundProduct, ProductRow } from '../../filter/products.ts';
import type { ProductTexts } from '../products/index.ts';
import type { Places } from '../products/places/places.ts';
import { type Facts, insertValues } from './answer.ts';

/** Plausible dates: from the first Landsat to beyond all plans. */
const [firstUs, lastUs] = [Date.UTC(1972, 0, 1) * 1000, Date.UTC(2100, 0, 1) * 1000];

const monthNames =
  'January February March April May June July August September October November December'.split(
    ' ',
  );

/** `20 May 2024 10:15 UTC`; null outside 1972 to 2099. */
export function datePhrase(us: number | null): string | null {
  const day = dayPhrase(us);
  return day === null || us === null ? null : `${day} ${timeOf(us)} UTC`;
}

/** `20 May 2024`; null outside 1972 to 2099. */
export function dayPhrase(us: number | null): string | null {
  if (us === null || !(us >= firstUs && us < lastUs)) return null;
  const date = new Date(us / 1000);
  return `${date.getUTCDate()} ${monthNames[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
}

/** `10:15`. */
export function timeOf(us: number): string {
  return new Date(us / 1000).toISOString().slice(11, 16);
}

/** `29 s`, `3 min`, `4.6 h`, `12 days`, `7.4 years`; null below half a second and above a hundred years. */
export function durationPhrase(us: number | null): string | null {
  if (us === null || !(us >= secondUs / 2 && us < 36_525 * dayUs)) return null;
  const years = us / (365.25 * dayUs);
  return years < 2 ? lengthText(us) : `${years.toFixed(1)} years`;
}

/** The time between two dates; null if the second is not after the first, or one is implausible. */
function delayPhrase(fromUs: number | null, toUs: number | null): string | null {
  if (datePhrase(fromUs) === null || datePhrase(toUs) === null) return null;
  return durationPhrase((toUs ?? 0) - (fromUs ?? 0));
}

/** `2.0 GB` (1 kB is 1,000 bytes); null for 0, and from 1,000 TB on. */
export function sizePhrase(bytes: number | null): string | null {
  return bytes !== null && bytes >= 1 && bytes < 1e15 ? byteText(bytes) : null;
}

/** `27.7 %`; rounded down, as in lists; null outside 0 to 100. */
export function percentPhrase(percent: number | null): string | null {
  if (percent === null || !(percent >= 0 && percent <= 100)) return null;
  return `${(Math.floor(percent * 10) / 10).toFixed(1).replace(/\.0$/, '')} %`;
}

/** Returns only the known values, in the order of their importance. */
export function knownFacts(values: Readonly<Record<string, string | null | undefined>>): Facts {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value ? [[name, value]] : [])),
  );
}

/** Returns the facts of a product, deleted or not. */
export function productFacts(found: FoundProduct, places: Places): Facts {
  const { row } = found;
  const named = parseProductName(row.productName ?? '');
  const startUs = row.sensingStartUs ?? named?.startUs ?? null;
  const endUs = row.sensingEndUs ?? named?.endUs ?? null;
  const isAuxiliary = named?.auxiliary === true;
  const sensed = datePhrase(startUs);
  return knownFacts({
    mission: missionText(row),
    type: named?.content ?? codeOf(row.productType),
    level: named?.level,
    place: placeOf(found, places),
    ...(isAuxiliary
      ? { valid: sensed && `from ${sensed}` }
      : {
          sensed,
          duration: lengthOf(startUs, endUs),
          cloud: percentPhrase(row.cloudCoverPercent),
        }),
    deletion: deletionText(row),
    tile: named?.tile ?? codeOf(row.tile),
    orbit: orbitText(row),
    instrument: isAuxiliary ? null : named?.instrument,
    mode: named?.mode,
    polarisation: named?.polarisation,
    published: datePhrase(row.publicationDateUs),
    delay: isAuxiliary ? null : after(delayPhrase(startUs, row.publicationDateUs), 'sensing'),
    received: receiptText(row),
    size: sizePhrase(row.sizeBytes),
  });
}

/** Returns `Sentinel-2A`; null for an unknown mission. Also for the rows of digests. */
export function missionText({ platform, productName, collection }: ProductRow): string | null {
  const satellite = platform ?? missionOfName(productName ?? '')?.satellite ?? collection;
  const [, mission = '', serial = ''] = /^(.*?\d?)([A-Z])?$/.exec(satellite ?? '') ?? [];
  const known = findMission(satellite) ?? findMission(mission);
  if (known === null || known.title === null) return null;
  return known.satellite === 'letter' && known.collection === mission
    ? `${known.title}${serial}`
    : known.title;
}

/** Returns a code such as `33TUM`; null for any other text. */
export function codeOf(text: string | null): string | null {
  return /^[A-Z0-9][A-Z0-9_-]{1,23}$/.test(text ?? '') ? text : null;
}

/** Returns `relative orbit 22, ascending`. */
function orbitText({ relativeOrbitNumber: orbit, orbitDirection }: ProductRow): string | null {
  if (orbit === null) return null;
  const [direction] = /^(?:a|de)scending$/i.exec(orbitDirection ?? '') ?? [];
  return `relative orbit ${orbit}${direction === undefined ? '' : `, ${direction.toLowerCase()}`}`;
}

function lengthOf(startUs: number | null, endUs: number | null): string | null {
  return startUs === null || endUs === null ? null : durationPhrase(endUs - startUs);
}

function after(delay: string | null, event: string): string | null {
  return delay === null ? null : `${delay} after ${event}`;
}

/** A later notification was not caused by the publication. */
const receiptDelayUsMax = 30 * dayUs;

function receiptText({ publicationDateUs, receivedAtUs }: ProductRow): string | null {
  const delayUs = receivedAtUs - (publicationDateUs ?? Number.NEGATIVE_INFINITY);
  return delayUs < receiptDelayUsMax
    ? after(delayPhrase(publicationDateUs, receivedAtUs), 'publication')
    : null;
}

/** Causes of the specification (Subscriptions), and one seen in live responses (facts, filters). */
const causes: Readonly<Record<string, string>> = {
  'duplicated product': 'because it was a duplicate',
  'missing checksum': 'because its checksum was missing',
  'corrupted product': 'because it was corrupted',
  'obsolete product': 'because it was obsolete',
  'obsolete product or other': 'because it was obsolete or for another reason',
  'reprocessed product': 'because it was reprocessed',
};

function deletionText({ deletionDateUs, deletionCause }: ProductRow): string | null {
  if (deletionDateUs === null) return null;
  const cause = deletionCause?.trim().toLowerCase() ?? '';
  const date = datePhrase(deletionDateUs);
  return ['deleted', date && `on ${date}`, Object.hasOwn(causes, cause) ? causes[cause] : null]
    .filter(Boolean)
    .join(' ');
}

/** Maximum length of a footprint; reading the largest possible one takes 50 ms. */
const footprintCharactersMax = 100_000;

/** Null without a readable footprint. */
function placeOf({ record, footprint }: FoundProduct, places: Places): string | null {
  const text = record.Footprint;
  if (typeof text === 'string' && text.length > footprintCharactersMax) return null;
  const geometry = footprint ?? productView(record).geometry();
  return geometry === null ? null : places.placeOf(geometry);
}

/** Returns a sentence in the language of summaries, from the clauses whose names are all known. */
export function sentenceOf(clauses: readonly string[], facts: Facts): string {
  const isKnown = (clause: string) =>
    [...clause.matchAll(/\{([a-z_]+)\}/g)].every(([, name = '']) => Object.hasOwn(facts, name));
  return clauses.filter(isKnown).join('');
}

/** Returns the text without a model. */
export function productTemplate(facts: Facts): string {
  const subject = facts.mission === undefined ? 'A product' : '{mission}';
  const clauses = [
    subject,
    ': {type}',
    ' ({level})',
    ' over {place}',
    ', valid {valid}',
    ', sensed {sensed}',
    ', cloud cover {cloud}',
    ', tile {tile}',
    ', {deletion}',
    facts.delay === undefined ? ', published {published}' : ', published {delay}',
    ', received {received}',
  ];
  return insertValues(sentenceOf(clauses, facts), facts);
}

/** Texts of products, for the API of products. */
export const productTexts: ProductTexts = {
  writtenTexts: ({ summaries }, productIds) => summaries.textsOf(productIds),
  reader: ({ summaries }) => summaries,
};
