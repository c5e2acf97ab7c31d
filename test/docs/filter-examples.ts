/** Examples of filters; docs/reference/filter-examples.md shows them with their matches. */
import type { Entity } from '../../src/filter/filter-tree.ts';

/** Conditions as lines of flags for `query products`, or as a program that exports `filter`. */
export interface Example {
  title: string;
  /** Default: Products. */
  entity?: Entity;
  /** Lines that find the same products. */
  lines?: string[];
  program?: string;
}

/** Content of `islands.geojson`. */
export const islands = `{"type":"FeatureCollection","features":[
  {"type":"Feature","properties":{"name":"Sicily"},
    "geometry":{"type":"Polygon","coordinates":[[[13,36],[16,36],[16,39],[13,39],[13,36]]]}},
  {"type":"Feature","properties":{"name":"Sardinia"},
    "geometry":{"type":"Polygon","coordinates":[[[8,38],[10,38],[10,42],[8,42],[8,38]]]}}]}
`;

export const chapters: Readonly<Record<string, readonly Example[]>> = {
  'Names, dates and types': [
    {
      title: 'One product by name',
      lines: [
        `--name S2B_MSIL1C_20260430T174849_N0511_R141_T15VVJ_20260501T001008.SAFE`,
        `--filter "Name eq 'S2B_MSIL1C_20260430T174849_N0511_R141_T15VVJ_20260501T001008.SAFE'"`,
      ],
    },
    {
      title: 'A collection',
      lines: [`--collection S2`, `--filter "Collection/Name eq 'SENTINEL-2'"`],
    },
    {
      title: 'Parts of the name',
      lines: [
        `--collection S2 --name 'S2B_MSIL2A_*_R143_*'`,
        `--filter "Collection/Name eq 'SENTINEL-2' and startswith(Name,'S2B_MSIL2A_') and contains(Name,'_R143_')"`,
      ],
    },
    {
      title: 'Published on one day (UTC)',
      lines: [
        `--published 2026-05-01`,
        `--filter "PublicationDate ge 2026-05-01 and PublicationDate lt 2026-05-02"`,
      ],
    },
    {
      title: 'Sensed between 10:00 and 12:00 in Rome',
      lines: [
        `--sensed 2026-05-01T10:00:00+02:00..2026-05-01T12:00:00+02:00`,
        `--filter "ContentDate/Start ge 2026-05-01T10:00:00+02:00 and ContentDate/Start lt 2026-05-01T12:00:00+02:00"`,
      ],
    },
    {
      title: 'Sensed between 10:00 and 12:00 UTC',
      lines: [
        `--sensed 2026-05-01T10:00:00..2026-05-01T12:00:00`,
        `--filter "ContentDate/Start ge 2026-05-01T10:00:00 and ContentDate/Start lt '2026-05-01T12:00:00.000Z'"`,
      ],
    },
    {
      title: 'One of two product types',
      lines: [
        `--type S2MSI1C,OL_1_EFR___`,
        `--filter "
  Attributes/OData.CSC.StringAttribute/any(att:att/Name eq 'productType' and att/OData.CSC.StringAttribute/Value eq 'S2MSI1C') or
  Attributes/OData.CSC.StringAttribute/any(att:att/Name eq 'productType' and att/OData.CSC.StringAttribute/Value eq 'OL_1_EFR___')"`,
      ],
    },
    {
      title: 'Cloud cover below 20 %',
      lines: [
        `--collection S2 --cloud-below 20`,
        `--filter "Collection/Name eq 'SENTINEL-2' and
  Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and att/OData.CSC.DoubleAttribute/Value lt 20)"`,
      ],
    },
    {
      title: 'Cloud cover below 20 %, or no cloud cover',
      lines: [
        `--filter "not
  Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and att/OData.CSC.DoubleAttribute/Value ge 20)"`,
      ],
    },
    {
      title: 'A Sentinel-2 tile, in the long and the short form',
      lines: [
        `--collection S2 --tile 10XEK`,
        `--filter "Collection/Name eq 'SENTINEL-2' and
  Attributes/OData.CSC.StringAttribute/any(att:att/Name eq 'tileId' and att/OData.CSC.StringAttribute/Value eq '10XEK')"`,
        `--filter "Collection/Name eq 'SENTINEL-2' and
  Attributes/OData.CSC.StringAttribute/any(a:a/Name eq 'tileId' and a/Value eq '10XEK')"`,
      ],
    },
    {
      title: 'A relative orbit number',
      lines: [
        `--filter "Collection/Name eq 'SENTINEL-1' and Attributes/OData.CSC.IntegerAttribute/any(
  att:att/Name eq 'relativeOrbitNumber' and att/OData.CSC.IntegerAttribute/Value eq 18)"`,
      ],
    },
    {
      title: 'Sentinel-1 GRD without the COG copies',
      lines: [
        `--name '*_GRDH_*' --filter "Collection/Name eq 'SENTINEL-1' and not contains(Name,'_COG')"`,
        `--filter "Collection/Name eq 'SENTINEL-1' and contains(Name,'_GRDH_') and not contains(Name,'_COG')"`,
      ],
    },
    {
      title: 'Sensing that overlaps half an hour (--sensed compares only the start)',
      lines: [
        `--filter "Collection/Name eq 'SENTINEL-1' and
  ContentDate/Start lt 2026-05-01T10:30:00Z and ContentDate/End gt 2026-05-01T10:00:00Z"`,
      ],
    },
    {
      title: 'Published on or before a day, modified later',
      lines: [
        `--published ..2026-05-01 --filter "ModificationDate ge 2026-05-02T10:00:00Z"`,
        `--filter "PublicationDate lt 2026-05-02 and ModificationDate ge 2026-05-02T10:00:00Z"`,
      ],
    },
    {
      title: 'Not available immediately',
      lines: [
        `--collection S3 --filter "Online eq false"`,
        `--filter "Collection/Name eq 'SENTINEL-3' and Online eq false"`,
      ],
    },
  ],
  Areas: [
    {
      title: 'A polygon',
      lines: [
        `--filter "Collection/Name eq 'SENTINEL-2' and OData.CSC.Intersects(area=geography'SRID=4326;
  POLYGON((120 -35,140 -38,152 -30,145 -12,122 -15,120 -35))')"`,
      ],
    },
    {
      title: 'A bounding box',
      lines: [
        `--collection S1 --bbox -10,36,30,60`,
        `--filter "Collection/Name eq 'SENTINEL-1' and
  OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((-10 36,30 36,30 60,-10 60,-10 36))')"`,
      ],
    },
    {
      title: 'Across the antimeridian: two boxes, or one ring (with a warning)',
      lines: [
        `--bbox 177,-20,-178,-12`,
        `--filter "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((177 -20,180 -20,180 -12,177 -12,177 -20))') or
  OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((-180 -20,-178 -20,-178 -12,-180 -12,-180 -20))')"`,
        `--filter "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((177 -20,-178 -20,-178 -12,177 -12,177 -20))')"`,
      ],
    },
    {
      title: 'Around a pole: a box, or one ring (with a warning)',
      lines: [
        `--bbox -180,75,180,90`,
        `--filter "OData.CSC.Intersects(area=geography'SRID=4326;
  POLYGON((-180 75,-90 75,0 75,90 75,180 75,180 90,-180 90,-180 75))')"`,
        `--filter "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((0 75,90 75,180 75,-90 75,0 75))')"`,
      ],
    },
    {
      title: 'The areas of a GeoJSON file',
      lines: [
        `--area islands.geojson`,
        `--filter "OData.CSC.Intersects(area=geography'SRID=4326;
  MULTIPOLYGON(((13 36,16 36,16 39,13 39,13 36)),((8 38,10 38,10 42,8 42,8 38)))')"`,
      ],
    },
  ],
  'Deleted products': [
    {
      title: 'Deleted for one of two causes',
      entity: 'DeletedProducts',
      lines: [
        `--deleted 2026-05-02T12:00:00Z.. --filter "DeletionCause eq 'Corrupted product' or DeletionCause eq 'Missing checksum'"`,
        `--deleted --filter "DeletionDate ge 2026-05-02T12:00:00Z and
  (DeletionCause eq 'Corrupted product' or DeletionCause eq 'Missing checksum')"`,
      ],
    },
  ],
  'In code': [
    {
      title: 'Built in code; String(filter) returns the expression',
      program: `import { and, cloudCover, collection, intersects, not, or, productType, sensed } from 'earshot';

const australia = {
  type: 'Polygon',
  coordinates: [[[110,-40],[155,-40],[155,-10],[110,-10],[110,-40]]],
};

export const filter = and(
  collection('SENTINEL-2'),
  or(productType.eq('S2MSI1C'), productType.eq('S2MSI2A')),
  not(cloudCover.ge(50)),
  sensed.from('2026-05-01'),
  intersects(australia),
);`,
    },
  ],
};
