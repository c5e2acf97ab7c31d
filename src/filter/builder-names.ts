/** The published attributes for the type checker: which name has which kind. */
import type { AttributeKind } from '../domain/filter-tree.ts';

/** As in attribute-names.ts, which has the source; a test holds the two together. */
export const namesByKind = {
  String:
    'USGScollection acquisitionType authority baselineCollection card4lSpecification card4lSpecificationVersion collectionCategory collectionName collectionNumber coordinates datastripId doi granuleIdentifier identifier instrumentShortName lastOrbitDirection operationalMode orbitDirection origin parentIdentifier platformSerialIdentifier platformShortName polarisationChannels processingBaseline processingCenter processingLevel processingMode processorName processorVersion productClass productComposition productConsolidation productGroupId productType projShape projTransform qualityStatus sceneId source sourceProduct sourceProductOriginDate swathIdentifier tileId timeliness wrsPath wrsRow wrsType',
  Double:
    'brightCover cloudCover cloudCoverLand coastalCover completionTimeFromAscendingNode freshInlandWaterCover geometricRmse geometricXBias geometricXStddev geometricYBias geometricYStddev illuminationZenithAngle landCover offNadir salineWaterCover snowOrIceCover startTimeFromAscendingNode sunAzimuthAngle sunElevationAngle tidalRegionCover view:sun_azimuth view:sun_elevation',
  Integer:
    'closedSeaCover continentalIceCover cycleNumber datatakeID instrumentConfigurationID lastOrbitNumber lastRelativeOrbitNumber numberOfBands openOceanCover orbitNumber pathNumber phaseNumber proj:epsg qualityInfo relativeOrbitNumber rowNumber sliceNumber spatialResolution totalSlices',
  DateTimeOffset: 'processingDate productGeneration segmentStartTime',
  Boolean: 'sliceProductFlag',
} as const satisfies Record<AttributeKind, string>;

type Words<
  Text extends string,
  Found extends string = never,
> = Text extends `${infer Word} ${infer Rest}` ? Words<Rest, Found | Word> : Found | Text;

type NamesByKind = { [Kind in AttributeKind]: Words<(typeof namesByKind)[Kind]> };

/** An attribute that the catalogue publishes, such as `cloudCover`. */
export type PublishedName = NamesByKind[AttributeKind];

/** The kind that a published attribute has. */
export type KindOf<Name extends PublishedName> = {
  [Kind in AttributeKind]: Name extends NamesByKind[Kind] ? Kind : never;
}[AttributeKind];
