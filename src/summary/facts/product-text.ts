/** Template text of a product: a few sentences built from its facts. */

import {
  areaPhrase,
  datePhrase,
  delayPhrase,
  durationPhrase,
  listPhrase,
  percentPhrase,
  present,
  sizePhrase,
} from './phrases.ts';
import { countriesNamed, nearPhrase, overPhrase } from './place-phrases.ts';
import { coversPeriod, type ProductFacts, receiptDelay } from './product-facts.ts';
import { baselineLabel, versionNoun, versionPhrase } from './versions.ts';

const minuteUs = 60_000_000;
/** Longer texts omit the scene; all other parts have a limited length. */
const charactersMax = 600;

/**
 * Returns one to four sentences in one paragraph. All numbers, dates and names are in the sheet in the same form,
 * except a name in no known form, which is shown truncated and in quotation marks.
 */
export function productText(facts: ProductFacts): string {
  const { deleted, auxiliary } = facts;
  const first = joined(
    identitySentence(facts),
    deleted ? deletionSentence(facts) : null,
    auxiliary ? validitySentence(facts) : sensingSentence(facts),
  );
  const scene = deleted || auxiliary ? null : sceneSentence(facts);
  const last = deleted ? sentence('It', ...versionPredicates(facts)) : catalogueSentence(facts);
  const whole = joined(first, scene, last);
  return whole.length <= charactersMax ? whole : joined(first, last);
}

function joined(...sentences: (string | null)[]): string {
  return present(...sentences).join(' ');
}

function identitySentence(facts: ProductFacts): string {
  const { content, level, instrument, satellite, foreignName } = facts;
  const subject = subjectOf(facts);
  const source = instrument === null ? '' : ` from the ${instrument.name} (${instrument.code})`;
  const how = `${source}${takenText(facts)}`;
  if (content !== null) return `${subject} holds ${content}${processingText(facts)}${how}.`;
  if (level !== null) return `${subject} is of ${level}${how}.`;
  if (instrument !== null) return `${subject} comes${how}.`;
  if (satellite !== null || foreignName !== null) return `${subject} has no known type.`;
  const unknown = 'The content of this product is not known';
  return facts.hasRecord ? `${unknown}.` : `${unknown}, because its record has not arrived.`;
}

/** Returns ` (Level-1, baseline collection 003, near real time)`. */
function processingText({ level, processingBaseline: baseline, timeliness }: ProductFacts): string {
  const parts = present(
    level,
    baseline && `${baselineLabel(baseline)} ${baseline}`,
    timelinessText(timeliness),
  );
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}

/** Returns `near real time` without its code; null for Sentinel-1, whose hours the delay already shows. */
function timelinessText(timeliness: string | null): string | null {
  return /^([a-z -]+) \([A-Z]+\)$/.exec(timeliness ?? '')?.[1] ?? null;
}

function takenText({ mode, polarisation }: ProductFacts): string {
  const taken = present(
    mode && `in ${mode} mode`,
    polarisation && `with ${polarisation} polarisation`,
  );
  return taken.length === 0 ? '' : `, taken ${taken.join(' ')}`;
}

function subjectOf({ auxiliary, satellite, foreignName }: ProductFacts): string {
  const name = foreignName === null ? '' : ` named "${foreignName}"`;
  if (!auxiliary) return `This ${satellite === null ? '' : `${satellite} `}product${name}`;
  return `This auxiliary file${satellite === null ? '' : ` of ${satellite}`}${name}`;
}

function deletionSentence(facts: ProductFacts): string {
  const date = datePhrase(facts.deletionUs);
  const on = date === null ? '' : ` on ${date}`;
  const why = facts.deletionCause === null ? '' : ` ${facts.deletionCause}`;
  return `It was deleted from the catalogue${on}${why}.`;
}

function validitySentence(facts: ProductFacts): string | null {
  const { startUs, endUs } = facts;
  const [from, until] = [datePhrase(startUs), datePhrase(endUs)];
  if (from === null) return null;
  const verb = coversPeriod(facts) ? 'covers the time' : 'is valid';
  return until === null || until === from
    ? `It ${verb} from ${from} on.`
    : `It ${verb} from ${from} until ${until}.`;
}

function sensingSentence(facts: ProductFacts): string | null {
  const { startUs, endUs, earlierUs, place } = facts;
  const start = datePhrase(startUs);
  const earlier = datePhrase(earlierUs);
  const over = place === null ? null : overPhrase(place);
  if (start === null && over === null) return null;
  const sensingUs = startUs === null || endUs === null ? 0 : endUs - startUs;
  const duration = sensingUs < minuteUs ? null : durationPhrase(sensingUs);
  const parts = present(
    earlier && `on ${earlier} and again`,
    start && (duration === null ? `on ${start}` : `for ${duration} from ${start}`),
    over,
  );
  return `It was sensed ${parts.join(' ')}${whereText(facts)}.`;
}

/** Returns the nearest city, or why the place is unknown. */
function whereText({ place, footprint, content, hasRecord }: ProductFacts): string {
  if (place === null) {
    if (!hasRecord) return '; the place is not known, because its record has not arrived';
    const isMissing = !footprint && content !== null;
    return isMissing ? '; the place is not known, because it has no footprint' : '';
  }
  const nearest = nearPhrase(place, countriesNamed(place))?.nearest ?? null;
  return nearest === null ? '' : `, ${nearest}`;
}

function sceneSentence(facts: ProductFacts): string | null {
  const { place, tile, orbitDirection, relativeOrbitNumber, cloudCoverPercent } = facts;
  const area = place === null ? null : areaPhrase(place.areaSquareKm);
  const within = place === null ? null : (nearPhrase(place, countriesNamed(place))?.within ?? null);
  const cloud = percentPhrase(cloudCoverPercent);
  const direction = orbitDirection === null ? '' : `${orbitDirection} `;
  const orbit = relativeOrbitNumber === null ? null : `relative orbit ${relativeOrbitNumber}`;
  return sentence(
    'The scene',
    area && `covers ${area}`,
    within && `includes ${within}`,
    tile && (tile.startsWith('path') ? `lies on ${tile}` : `lies in tile ${tile}`),
    orbit && `was taken on ${direction}${orbit}`,
    cloud && `has a cloud cover of ${cloud}`,
  );
}

function catalogueSentence(facts: ProductFacts): string | null {
  const { publicationUs, startUs, auxiliary, online, sizeBytes } = facts;
  const published = datePhrase(publicationUs);
  const delay = auxiliary ? null : delayPhrase(startUs, publicationUs);
  const after = delay === null ? '' : ` (${delay} after sensing)`;
  const size = sizePhrase(sizeBytes);
  return sentence(
    'It',
    published && `was published on ${published}${after}`,
    receiptText(facts),
    size && `has a size of ${size}`,
    online === false ? 'is offline' : null,
    ...versionPredicates(facts),
  );
}

function receiptText(facts: ProductFacts): string | null {
  const delay = receiptDelay(facts);
  if (delay !== null) return `was received ${delay} later`;
  const received = datePhrase(facts.receivedUs);
  return received && `was first received on ${received}`;
}

/** Null without predicates. */
function sentence(subject: string, ...parts: (string | null)[]): string | null {
  const predicates = present(...parts);
  return predicates.length === 0 ? null : `${subject} ${listPhrase(predicates)}.`;
}

function versionPredicates(facts: ProductFacts): (string | null)[] {
  const { replacedBy, replaces, deleted } = facts;
  const noun = versionNoun(facts);
  const [newer, older] = [versionPhrase(replacedBy), versionPhrase(replaces)];
  const verb = deleted ? 'replaced' : 'replaces';
  return [
    newer && `was replaced by a newer ${noun} (${newer})`,
    older && `${verb} an older ${noun} (${older})`,
  ];
}
