/**
 * The attributes that the catalogue publishes: their names, kinds and collections.
 *
 * Recorded answers of `GET /odata/v1/Attributes(<collection>)`, as CDSETool/CDSETool keeps them
 * (src/cdsetool/_attributes.py, commit c4abbff33d). New ones appear without notice, and products of
 * other collections carry others: an unknown name is a reason to warn, never to refuse.
 */
import { type AttributeKind, attributeKinds } from '../domain/filter-tree.ts';

export interface PublishedAttribute {
  readonly name: string;
  readonly kind: AttributeKind;
  /** The collections whose products carry it. */
  readonly collections: readonly string[];
}

/** The collections in the table's short words. */
const collections: Readonly<Record<string, readonly string[]>> = {
  S1: ['SENTINEL-1'],
  S1RTC: ['SENTINEL-1-RTC'],
  S2: ['SENTINEL-2'],
  S3: ['SENTINEL-3'],
  S5P: ['SENTINEL-5P'],
  S6: ['SENTINEL-6'],
  ENV: ['ENVISAT'],
  L5: ['LANDSAT-5'],
  L7: ['LANDSAT-7'],
  L8: ['LANDSAT-8'],
  L9: ['LANDSAT-9'],
  L: ['LANDSAT-5', 'LANDSAT-7', 'LANDSAT-8', 'LANDSAT-9'],
};

/** Name, kind, collections. */
const table = `
USGScollection String L8 L9
acquisitionType String S5P
authority String S1RTC S6 ENV L
baselineCollection String S3 S5P
brightCover Double S3
card4lSpecification String L
card4lSpecificationVersion String L
closedSeaCover Integer S3
cloudCover Double S2 S3 L
cloudCoverLand Double L
coastalCover Double S3
collectionCategory String L
collectionName String L5 L7
collectionNumber String L
completionTimeFromAscendingNode Double S1
continentalIceCover Integer S3
coordinates String S1 S2 S3 S5P
cycleNumber Integer S1 S3 ENV
datastripId String S2
datatakeID Integer S1
doi String S5P
freshInlandWaterCover Double S3
geometricRmse Double L
geometricXBias Double L
geometricXStddev Double L
geometricYBias Double L
geometricYStddev Double L
granuleIdentifier String S2
identifier String S5P
illuminationZenithAngle Double S2
instrumentConfigurationID Integer S1
instrumentShortName String S1 S1RTC S2 S3 S5P S6 ENV L
landCover Double S3
lastOrbitDirection String S3
lastOrbitNumber Integer S2 S3
lastRelativeOrbitNumber Integer S3
numberOfBands Integer L
offNadir Double L
openOceanCover Integer S3
operationalMode String S1 S1RTC S2 S3 S6 L
orbitDirection String S1 S1RTC S3
orbitNumber Integer S1 S1RTC S2 S3 S5P S6 ENV L
origin String S1 S2 S6
parentIdentifier String S5P
pathNumber Integer L
phaseNumber Integer ENV
platformSerialIdentifier String S1 S1RTC S2 S3 S5P S6
platformShortName String S1 S1RTC S2 S3 S5P S6 ENV L
polarisationChannels String S1 S1RTC
processingBaseline String S1 S2 S3 S5P S6
processingCenter String S1 S2 S3 S5P S6
processingDate DateTimeOffset S1 S2 S3 S5P S6
processingLevel String S1 S1RTC S2 S3 S5P S6 ENV L
processingMode String S5P
processorName String S1 S3 S5P
processorVersion String S1 S2 S3 S5P S6
productClass String S1 S5P
productComposition String S1
productConsolidation String S1
productGeneration DateTimeOffset S1
productGroupId String S2
productType String S1 S1RTC S2 S3 S5P S6 ENV L
proj:epsg Integer L
projShape String L
projTransform String L
qualityInfo Integer S2
qualityStatus String S2 S5P
relativeOrbitNumber Integer S1 S1RTC S2 S3 S6
rowNumber Integer L
salineWaterCover Double S3
sceneId String L
segmentStartTime DateTimeOffset S1
sliceNumber Integer S1
sliceProductFlag Boolean S1
snowOrIceCover Double S3
source String S6
sourceProduct String S2
sourceProductOriginDate String S2
spatialResolution Integer S1RTC S6 ENV L
startTimeFromAscendingNode Double S1
sunAzimuthAngle Double L
sunElevationAngle Double L
swathIdentifier String S1
tidalRegionCover Double S3
tileId String S2
timeliness String S1 S3 S6
totalSlices Integer S1
view:sun_azimuth Double L
view:sun_elevation Double L
wrsPath String L
wrsRow String L
wrsType String L
`;

export const publishedAttributes: readonly PublishedAttribute[] = table
  .trim()
  .split('\n')
  .map((row) => {
    const [name = '', kindName, ...words] = row.split(' ');
    const kind = attributeKinds.find((one) => one === kindName) ?? 'String';
    return { name, kind, collections: words.flatMap((word) => collections[word] ?? []) };
  });

/** Those without published attributes: eu-cdse/documentation, APIs/OData.qmd; facts, filters 2. */
const otherCollections = [
  'CCM',
  'CLMS',
  'COP-DEM',
  'GLOBAL-MOSAICS',
  'LANDSAT-8-ESA',
  'S2GLC',
  'SMOS',
  'TERRAAQUA',
];

/** All collections that are known; others may exist. */
export const publishedCollections: readonly string[] = [
  ...new Set([...publishedAttributes.flatMap((one) => one.collections), ...otherCollections]),
];

/** One attribute as `GET /Attributes(<collection>)` has it. */
interface CollectionAttribute {
  readonly Name: string;
  readonly ValueType: AttributeKind;
}

/** The attributes that a collection publishes; null for a collection of which none are known. */
export function attributesOf(collection: string): readonly CollectionAttribute[] | null {
  const own = publishedAttributes.filter((one) => one.collections.includes(collection));
  return own.length === 0 ? null : own.map(({ name, kind }) => ({ Name: name, ValueType: kind }));
}

const attributeByName = new Map(publishedAttributes.map((one) => [one.name, one]));

/** The kind that an attribute is published with; undefined for names that are not. Case matters. */
export function attributeKindOf(name: string): AttributeKind | undefined {
  return attributeByName.get(name)?.kind;
}
