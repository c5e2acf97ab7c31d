/** The catalogue's attribute names with their value types, and Attributes arrays made from them. */
import type { ProductAttribute } from './catalogue-product.ts';

/** The published types; beginningDateTime and endingDateTime are in records only, not in the list. */
const valueTypes = {
  acquisitionType: 'String',
  baselineCollection: 'String',
  beginningDateTime: 'DateTimeOffset',
  brightCover: 'Double',
  closedSeaCover: 'Integer',
  cloudCover: 'Double',
  coastalCover: 'Double',
  completionTimeFromAscendingNode: 'Double',
  continentalIceCover: 'Integer',
  cycleNumber: 'Integer',
  datastripId: 'String',
  datatakeID: 'Integer',
  doi: 'String',
  endingDateTime: 'DateTimeOffset',
  freshInlandWaterCover: 'Double',
  granuleIdentifier: 'String',
  identifier: 'String',
  instrumentConfigurationID: 'Integer',
  instrumentShortName: 'String',
  landCover: 'Double',
  lastOrbitDirection: 'String',
  lastOrbitNumber: 'Integer',
  lastRelativeOrbitNumber: 'Integer',
  openOceanCover: 'Integer',
  operationalMode: 'String',
  orbitDirection: 'String',
  orbitNumber: 'Integer',
  origin: 'String',
  parentIdentifier: 'String',
  platformSerialIdentifier: 'String',
  platformShortName: 'String',
  polarisationChannels: 'String',
  processingBaseline: 'String',
  processingCenter: 'String',
  processingDate: 'DateTimeOffset',
  processingLevel: 'String',
  processingMode: 'String',
  processorName: 'String',
  processorVersion: 'String',
  productClass: 'String',
  productComposition: 'String',
  productConsolidation: 'String',
  productGroupId: 'String',
  productType: 'String',
  qualityStatus: 'String',
  relativeOrbitNumber: 'Integer',
  salineWaterCover: 'Double',
  segmentStartTime: 'DateTimeOffset',
  sliceNumber: 'Integer',
  sliceProductFlag: 'Boolean',
  snowOrIceCover: 'Double',
  sourceProduct: 'String',
  sourceProductOriginDate: 'String',
  startTimeFromAscendingNode: 'Double',
  swathIdentifier: 'String',
  tidalRegionCover: 'Double',
  tileId: 'String',
  timeliness: 'String',
  totalSlices: 'Integer',
} as const;

interface ValueOf {
  String: string;
  DateTimeOffset: string;
  Integer: number;
  Double: number;
  Boolean: boolean;
}

/** Values by attribute name; the order of the keys becomes the order of the array. */
export type AttributeValues = {
  readonly [Name in keyof typeof valueTypes]?: ValueOf[(typeof valueTypes)[Name]];
};

/** Writes the Attributes array of a record. */
export function toAttributes(values: AttributeValues): ProductAttribute[] {
  const types: Readonly<Record<string, string>> = valueTypes;
  return Object.entries(values).map(([name, value]) => ({
    '@odata.type': `#OData.CSC.${types[name]}Attribute`,
    Name: name,
    Value: value,
    ValueType: types[name],
  }));
}
