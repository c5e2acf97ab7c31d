/** Finds names in an answer that are not in the facts. */
import type { Span } from '../../filter/finding.ts';
import {
  type Claim,
  type Doubt,
  type DoubtKind,
  foldedName,
  type PlacedDoubt,
  type WordClaim,
  wordKey,
} from './claim.ts';
import {
  countriesByAdjective,
  type FoundPlace,
  type IsPlaceName,
  type KnownFacts,
  placesIn,
} from './known-facts.ts';

/** Returns doubts for place names, in any case, that the facts do not have as full names. */
export function placeDoubts(
  text: string,
  claims: readonly Claim[],
  { places }: KnownFacts,
  isPlaceName: IsPlaceName,
): PlacedDoubt[] {
  return placesIn(claims, text, isPlaceName)
    .filter((place) => !places.has(foldedName(place.name)) && !isOrdinary(text, place))
    .map(({ start, end }) => ({ kind: 'place', start, end }));
}

/** Within a sentence, an ordinary word is a place only if capitalized. */
function isOrdinary(text: string, { start, name }: FoundPlace): boolean {
  if (!ordinaryPlaceWords.has(name)) return false;
  return !/\p{Lu}/u.test(text.charAt(start)) || beginsSentence(text, start);
}

/** Returns doubts for names that are not in the facts, and for all words in another script. */
export function nameDoubts(
  text: string,
  claims: readonly Claim[],
  known: KnownFacts,
  places: readonly Span[],
): PlacedDoubt[] {
  const isPlace = ({ start, end }: Span) =>
    places.some((place) => place.start < end && start < place.end);
  const doubts = claims
    .filter((claim) => claim.kind === 'word')
    .filter((claim) => !isPlace(claim))
    .flatMap((claim) => doubtAbout(text, claim, known));
  return joined(text, doubts);
}

function doubtAbout(text: string, claim: WordClaim, known: KnownFacts): PlacedDoubt[] {
  const { start, end, word } = claim;
  if (known.words.has(wordKey(word))) return [];
  if (isForeignScript(word)) return [{ kind: 'script', start, end }];
  const first = beginsSentence(text, start);
  const isOpener = first && (isOpening(word) || isParticiple(word, text.slice(end, end + 16)));
  const [doubt] = unknownParts(word, known.words).flatMap((part, index) => {
    return index === 0 && isOpener ? [] : (doubtOfPart(part, known) ?? []);
  });
  return doubt === undefined ? [] : [{ kind: doubt, start, end }];
}

function doubtOfPart(part: string, { places }: KnownFacts): DoubtKind | null {
  const key = foldedName(part);
  const countries = countriesByAdjective.get(key);
  if (countries !== undefined && (key !== 'polish' || part !== key)) {
    return countries.some((country) => places.has(country)) ? null : 'place';
  }
  if (isCode(part)) return key === 'id' || key === 'utc' ? null : 'name';
  if (conditionWords.has(key)) return 'state';
  if (fieldWords.has(key)) return 'name';
  return /^\p{Lu}/u.test(part) && !capitalWords.has(key) ? 'name' : null;
}

function isOpening(word: string): boolean {
  const [part = ''] = word.split(/[-/]/);
  const key = foldedName(part);
  return !isCode(part) && openingWords.has(key) && !fieldWords.has(key);
}

/** Returns true for `Tucked between` or `Named after`; names with these endings are places, or precede a verb. */
function isParticiple(word: string, after: string): boolean {
  return /^\p{Lu}\p{Ll}{2,}(?:ed|ing)$/u.test(word) && beforeParticiple.test(after);
}

/** Maximum number of parts in a name of the facts; a GUID has five. */
const partsMax = 8;

/** Returns the parts of a hyphenated word that are not in the facts: `based` for `Sentinel-2-based`. */
function unknownParts(word: string, known: ReadonlySet<string>): string[] {
  const parts = word.split(/[-/]/);
  const rest: string[] = [];
  let at = 0;
  while (at < parts.length) {
    let count = Math.min(parts.length - at, partsMax);
    while (count > 0 && !known.has(wordKey(parts.slice(at, at + count).join('-')))) count -= 1;
    if (count === 0) rest.push(parts[at] ?? '');
    at += Math.max(count, 1);
  }
  return rest;
}

/** Returns true for words with digits, underscores or inner capitals, which are names in any position. */
function isCode(word: string): boolean {
  return /[\p{N}_]|\p{Ll}\p{Lu}|\p{Lu}{2}/u.test(word);
}

/** Returns true for letters outside the Latin script of European languages, which include look-alikes. */
function isForeignScript(word: string): boolean {
  return /[^\p{Script=Latin}\p{M}\p{N}_'/µμ -]|[\u0250-\u02af\u1d00-\u1dbf\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f\uff00-\uffef]/u.test(
    word,
  );
}

function beginsSentence(text: string, start: number): boolean {
  return /(?:^|[.!?]["')]{0,2} )["'(]{0,2}$/.test(text.slice(Math.max(0, start - 6), start));
}

/** Joins adjacent unknown words to one name. */
function joined(text: string, doubts: readonly PlacedDoubt[]): PlacedDoubt[] {
  const whole: PlacedDoubt[] = [];
  for (const doubt of doubts) {
    const before = whole.at(-1);
    if (before?.kind === doubt.kind && text.slice(before.end, doubt.start) === ' ') {
      whole[whole.length - 1] = { ...before, end: doubt.end };
    } else whole.push(doubt);
  }
  return whole;
}

/** Maximum number of characters quoted in a doubt. */
const wordsMax = 60;

/** Converts positions in a text to doubts; of overlapping ones, the first counts. */
export function asDoubts(text: string, placed: readonly PlacedDoubt[]): Doubt[] {
  const doubts: Doubt[] = [];
  let end = 0;
  for (const doubt of placed.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    if (doubt.start < end) continue;
    const words = text.slice(doubt.start, Math.min(doubt.end, doubt.start + wordsMax));
    doubts.push({ kind: doubt.kind, words: words.toWellFormed() });
    end = doubt.end;
  }
  return doubts;
}

/** Splits a text into a set of words. */
function wordSet(words: string): ReadonlySet<string> {
  return new Set(words.trim().split(/\s+/));
}

/** Words that may be capitalized anywhere without being in the facts. */
const capitalWords = wordSet(`
  a an and as at by for from id in it its no of on the this to utc with copernicus earth level
`);

/**
 * Words that may begin a sentence about a product, in addition to those of the facts. A closed list, because every
 * first word is capitalized, whether it is a name or not.
 */
const openingWords = wordSet(`
  a about above accordingly acquired acquisition acquisitions across additional additionally after all almost along
  already also although altogether among an and another any approximately archived are area areas around arrived arriving as
  at auxiliary availability available average averaging based because before began beginning being below besides between beyond both
  but by calibrated calibration captured captures capturing centred centered clear clouds cloud cloudy collected collecting
  collection combined compared completed comprising conditions contained containing contains content corrupted countries
  coverage covered covering covers created creation currently cut data dataset datasets dated day days deleted deletion
  deletions delay delays delivered delivering delivery derived describing described despite details distributed download due
  during each earlier either ending entirely especially even every extending falling few file files finally first five flying
  following footage footprint for four from full further generated given granule ground gathered half having hence here high
  hourly however identified if image imaged imagery images imaging in included includes including individual information instead
  intended is issued it item items its just kept known land largely largest last lasting late later latest launched
  least less like located location longest low made mainly many marked matching mean meanwhile measured measurement measurements
  measuring median medium minimum maximum missing modified more moreover most mostly much nearby near nearest nearly
  neither nevertheless new newer newest next night no nominal none north northern northeast northwest not notably note
  notably notification notifications nothing now observation observations observed observing obtained ocean of off older
  on once one only open operated orbit orbital orbiting other others otherwise our out outside over overall overlapping owing
  part partially partly parts pass passes passing past place places planned positioned precise predominantly present presently
  previously primarily prior processed processing processor produced product production products providing provided
  publication published publishing quality quick radiometric raw ready recorded received receipt receiving registered related
  released remaining removed replaced replacing replaces reprocessed reprocessing resolution restituted results retrieved
  roughly satellite satellites scan scanned scene scenes sea seas seen sensed sensing sensor seven several shared
  short shortest shortly shot showing shown shows similarly since single situated six size sizes slightly smallest so some
  somewhat south southern southeast southwest spanning spans spatial spread starting status still stored stretching such supplied surface
  swath taken taking temporal ten than that the their them then there therefore these they this those though three through
  throughout thus tile tiles time timeliness timely to together total totalling totaling touching toward towards two typical ultimately
  under until unlike up updated upon using usually valid validity version versions very via viewed virtually was water
  access accompanied called counting lying named nothing ordered set sized titled withdrawn
  we week weekly west western east eastern what when where whereas whether which while whole with within without worth yet
  zero
`);

/**
 * Place names that are ordinary words in lower case: `reading the data`, `split over two tiles`. Contains all names
 * of the place data that are common English words; other names count as places in any case.
 */
const ordinaryPlaceWords = wordSet(`
  along archway aurora bath bender billings boulder buffalo concord cork corona delta derby enterprise garland gent
  hail independence lens male man manta mary mascara metro mobile most nice of offa oral orange paradise perm phoenix
  pole queens reading riverside saga sale same shaping slough split surprise tours van victoria vista warren
`);

/** Names and technical terms that count as names in lower case too; the facts contain them if they are true. */
const fieldWords = wordSet(`
  sentinel landsat envisat modis viirs smos cryosat metop jason radarsat terrasar tandem worldview pleiades
  planetscope rapideye prisma enmap icesat grace swot aeolus proba
  msi olci slstr sral tropomi oli tirs aster meris etm avhrr
  radar altimeter altimetry ascending descending
  methane ozone formaldehyde aerosol aerosols monoxide dioxide
  esa nasa airbus thales eumetsat ecmwf usgs noaa jaxa isro cnes dlr roscosmos spacex maxar esri cloudferro
`);

/** Weather and natural events: only true if in the facts, because no model has seen the image. */
const conditionWords = wordSet(`
  snow snowy rain rains rainy rainfall fog foggy haze hazy mist misty ice icy hailstorm frost frozen drizzle lightning
  storm storms stormy thunderstorm thunderstorms hurricane typhoon cyclone tornado flood floods flooded flooding drought
  fire fires wildfire wildfires smoke dust dusty ash sandstorm earthquake eruption volcano volcanic landslide tsunami
  sunny sunshine overcast windy cloudless cloud-free
`);

/** Matches the text after a participle that begins a sentence. */
const beforeParticiple =
  /^,? (?:in|on|at|by|over|from|with|within|between|near|as|to|the|a|an|its|for|along|under|just|across|around|about|after|against|through|mainly|mostly|entirely|partly|largely|all|both|each|every|this|these) /;
