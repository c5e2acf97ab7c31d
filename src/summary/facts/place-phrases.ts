/** Describes places in sentences. */
import type { NearPlace, Place, PlaceShare } from '../places/globe.ts';
import { countPhrase, listPhrase } from './phrases.ts';

/** Maximum number of names in a sentence; the rest become `others`. */
const regionsMax = 4;
/** Below this sum of the named shares, the sentence mentions others: a place omits the smallest shares. */
const wholeShare = 0.95;

/**
 * Returns `Poland`, `mostly Poland, with small parts of Germany and the Baltic Sea` or `parts of Poland and
 * Germany`. `mostly` means 60 % or more, `small` below 15 %. Null for a place without names.
 */
export function regionPhrase(place: Place): string | null {
  return sharesPhrase(place, '');
}

/** Same as `regionPhrase`, after a verb: `over Poland`, `mostly over Poland, with …`, `over parts of …`. */
export function overPhrase(place: Place): string | null {
  return sharesPhrase(place, 'over ');
}

function sharesPhrase(place: Place, over: string): string | null {
  const named = largestOf(place);
  const [first, ...rest] = named;
  if (first === undefined) return null;
  const names = rest.map(({ name }) => withArticle(name));
  const others = hasOthers(place, named);
  if (names.length === 0) return `${others ? 'mostly ' : ''}${over}${withArticle(first.name)}`;
  if (others) names.push('others');
  if (first.share < 0.6)
    return `${over}parts of ${listPhrase([withArticle(first.name), ...names])}`;
  const small = rest.every(({ share }) => share < 0.15) ? 'small ' : '';
  const parts = names.length > 1 ? `${small}parts` : `a ${small}part`;
  return `mostly ${over}${withArticle(first.name)}, with ${parts} of ${listPhrase(names)}`;
}

function hasOthers({ countries, seas }: Place, named: readonly PlaceShare[]): boolean {
  const total = named.reduce((sum, { share }) => sum + share, 0);
  return countries.length + seas.length > named.length || total < wholeShare;
}

function largestOf(place: Place): PlaceShare[] {
  const all = [...place.countries, ...place.seas];
  return all.toSorted((a, b) => b.share - a.share).slice(0, regionsMax);
}

/** Exceptions without an article: `Hudson Bay`, `Lake Victoria`. */
const bare = /^(?:Lake |South Georgia|Heard Island)|(?: Bay| Sound)$/;
/** Countries with an article: `the Faroe Islands`, `the United States`. */
const articled =
  /^(?:United |Democratic Republic|Republic of|Federated |Isle of|State of|French Southern)|(?:Islands|Republic|Emirates|Territory|Territories|Lands|Bank|Glacier)$|^(?:Netherlands|Philippines|Bahamas|Maldives|Comoros|Seychelles|Gambia|Vatican)$/;
const waters = /\b(?:Sea|Ocean|Gulf|Strait|Straits|Channel|Bight|Passage|Basin|Estuary)\b|^Bay of /;
const watersBare = /^(?:Skagerrak|Kattegat|Río de la Plata)$/;

/** Adds the article that a country or sea needs: `the Netherlands`, `Austria`, `the Adriatic Sea`. */
export function withArticle(name: string): string {
  if (bare.test(name)) return name;
  const needed = articled.test(name) || waters.test(name) || watersBare.test(name);
  return needed ? `the ${name}` : name;
}

/** Cities within a footprint, or else the nearest one. */
interface NearPhrase {
  /** `Bern (Switzerland) and Bergamo (Italy)`; null if there is none. */
  within: string | null;
  /** Location of the product: `about 260 km south-east of Ushuaia (Argentina)`. */
  nearest: string | null;
}

/** Null if no city is near. Does not repeat countries already `mentioned`. */
export function nearPhrase({ near }: Place, mentioned: readonly string[] = []): NearPhrase | null {
  const inside = near.filter(({ distanceKm }) => distanceKm === 0);
  if (inside.length > 0) {
    const names = inside.map(({ name, country }) => `${name}${suffixOf(country, mentioned)}`);
    return { within: listPhrase(names), nearest: null };
  }
  const [first] = near;
  return first === undefined ? null : { within: null, nearest: distanceText(first, mentioned) };
}

/** Returns the countries that `regionPhrase` names. */
export function countriesNamed(place: Place): string[] {
  const largest = largestOf(place);
  return place.countries.filter((one) => largest.includes(one)).map(({ name }) => name);
}

function distanceText(place: NearPlace, mentioned: readonly string[]): string {
  const { name, country, distanceKm, direction } = place;
  const tens = countPhrase(Math.round(distanceKm / 10) * 10);
  const distance = distanceKm < 10 ? 'less than 10 km' : `about ${tens} km`;
  const side = direction === null ? 'from' : `${direction} of`;
  return `${distance} ${side} ${name}${suffixOf(country, mentioned)}`;
}

function suffixOf(country: string, mentioned: readonly string[]): string {
  return mentioned.includes(country) ? '' : ` (${country})`;
}
