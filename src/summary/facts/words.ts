/** What the codes of attributes mean (all others have no words), and how places are described. */

import {
  auxiliaryContent,
  modePhrase,
  sentinel3Content,
  sentinel5pContent,
} from '../../domain/naming/conventions.ts';
import { lookup, timelinesses as nameTimelinesses } from '../../domain/naming/product-name.ts';
import type { NearPlace, Place, PlaceShare } from '../places/globe.ts';
import { countPhrase, listPhrase } from './phrases.ts';

/** `Sentinel-2` for SENTINEL-2, as people write it; null for a mission in no known form. */
export function missionPhrase(mission: string): string | null {
  if (mission === 'ENVISAT') return 'Envisat';
  if (mission === 'SMOS') return mission;
  const [, name, number] = /^(SENTINEL|LANDSAT)-([1-9]|5P)$/.exec(mission) ?? [];
  return name === undefined ? null : `${name[0]}${name.slice(1).toLowerCase()}-${number}`;
}

const platforms = /^(?:SENTINEL-(?:[1236]|5P)|LANDSAT-[45789]|ENVISAT|SMOS)$/;

/** `Sentinel-2A` of platformShortName and platformSerialIdentifier; null for an unknown platform. */
export function satelliteOf(platform: string | null, serial: string | null): string | null {
  const name = platform?.toUpperCase() ?? '';
  const mission = platforms.test(name) ? missionPhrase(name) : null;
  if (mission === null || serial === null || !/^Sentinel-[1236]$/.test(mission)) return mission;
  return /^[A-D]$/.test(serial) ? `${mission}${serial}` : mission;
}

const productTypes: Readonly<Record<string, string>> = {
  S2MSI1C: 'top-of-atmosphere reflectance',
  S2MSI2A: 'surface reflectance',
  'CARD-BS': 'terrain-corrected radar backscatter',
  'CARD-COH6': 'interferometric coherence over 6 days',
  'CARD-COH12': 'interferometric coherence over 12 days',
};

/** By what stands behind the mode: `IW_SLC__1S`. */
const radarTypes: readonly (readonly [RegExp, string])[] = [
  [/^SLC__1S$/, 'single look complex images'],
  [/^GRD[FHM]_1S$/, 'ground range detected images'],
  [/^GRD[FHM]_1S-COG$/, 'cloud-optimised ground range detected images'],
  [/^OCN__2S$/, 'ocean wind, wave and surface velocity fields'],
  [/^RAW__0S$/, 'raw radar signals'],
];

/** What products of a type hold; null for an unknown type. */
export function contentOfType(type: string | null): string | null {
  if (type === null) return null;
  return (
    lookup(productTypes, type) ??
    radarContent(type) ??
    sentinel3Content(type) ??
    sentinel5pContent(type) ??
    auxiliaryContent(type)
  );
}

function radarContent(type: string): string | null {
  if (type === 'RAW') return 'raw radar signals';
  if (modePhrase(type.slice(0, 2)) === null || type[2] !== '_') return null;
  return radarTypes.find(([pattern]) => pattern.test(type.slice(3)))?.[1] ?? null;
}

/** `Level-1` of `LEVEL1`, `1`, `L1C`, `S2MSI2A` and the like; null for other texts. */
export function levelOf(level: string | null): string | null {
  const [, digit] = /^(?:LEVEL-?|L|S2MSI)?([0-3][A-C]?)$/i.exec(level ?? '') ?? [];
  return digit === undefined ? null : `Level-${digit.toUpperCase()}`;
}

/** `VV and VH` of `VV&VH`; null for anything but one or two channels. */
export function polarisationOf(channels: string | null): string | null {
  const [, first, second] = /^([HV]{2})(?:[&,/ ]([HV]{2}))?$/.exec(channels ?? '') ?? [];
  if (first === undefined) return null;
  return second === undefined ? first : `${first} and ${second}`;
}

const timelinesses: Readonly<Record<string, string>> = {
  ...nameTimelinesses,
  'Fast-24h': 'within 24 hours (Fast-24h)',
  'NRT-3h': 'within 3 hours (NRT-3h)',
  'NRT-1h': 'within 1 hour (NRT-1h)',
  'NRT-10m': 'within 10 minutes (NRT-10m)',
  'Off-line': 'offline processing',
  Reprocessing: 'reprocessing',
};

export function timelinessOf(code: string | null): string | null {
  return code === null ? null : lookup(timelinesses, code);
}

/** More names than these make no sentence: the rest are others. */
const regionsMax = 4;
/** Where the named ones have less of it together, there are others; a place leaves out the smallest. */
const wholeShare = 0.95;

/**
 * `Poland`; `mostly Poland, with small parts of Germany and the Baltic Sea`; `parts of Poland and Germany`.
 * Shares are words alone: mostly is 60 % and more, small is below 15 %. Null for a place without names.
 */
export function regionPhrase(place: Place): string | null {
  return sharesInWords(place, '');
}

/** The same behind a verb: `over Poland`, `mostly over Poland, with …`, `over parts of …`. */
export function overPhrase(place: Place): string | null {
  return sharesInWords(place, 'over ');
}

function sharesInWords(place: Place, over: string): string | null {
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

/** Names that are said without an article though they look otherwise: `Hudson Bay`, `Lake Victoria`. */
const bare = /^(?:Lake |South Georgia|Heard Island)|(?: Bay| Sound)$/;
/** Countries that are said with one: `the Faroe Islands`, `the United States`. */
const articled =
  /^(?:United |Democratic Republic|Republic of|Federated |Isle of|State of|French Southern)|(?:Islands|Republic|Emirates|Territory|Territories|Lands|Bank|Glacier)$|^(?:Netherlands|Philippines|Bahamas|Maldives|Comoros|Seychelles|Gambia|Vatican)$/;
const waters = /\b(?:Sea|Ocean|Gulf|Strait|Straits|Channel|Bight|Passage|Basin|Estuary)\b|^Bay of /;
const watersBare = /^(?:Skagerrak|Kattegat|Río de la Plata)$/;

/** `the Netherlands`, `Austria`, `the Adriatic Sea`, `Hudson Bay`: countries and seas within a sentence. */
export function withArticle(name: string): string {
  if (bare.test(name)) return name;
  const needed = articled.test(name) || waters.test(name) || watersBare.test(name);
  return needed ? `the ${name}` : name;
}

/** Large places that lie within, and the nearest one where none does. */
interface NearPhrase {
  /** `Bern (Switzerland) and Bergamo (Italy)`; null where none lies within. */
  within: string | null;
  /** `about 260 km south-east of Ushuaia (Argentina)`: where the product lies. */
  nearest: string | null;
}

/** Null where no place is near. Countries that were `mentioned` already are not named again. */
export function nearPhrase({ near }: Place, mentioned: readonly string[] = []): NearPhrase | null {
  const inside = near.filter(({ distanceKm }) => distanceKm === 0);
  if (inside.length > 0) {
    const names = inside.map(({ name, country }) => `${name}${suffixOf(country, mentioned)}`);
    return { within: listPhrase(names), nearest: null };
  }
  const [first] = near;
  return first === undefined ? null : { within: null, nearest: distanceText(first, mentioned) };
}

/** The countries that `regionPhrase` names. */
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
