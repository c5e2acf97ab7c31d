/** The shapes of the catalogue's product records: published, as read from a file, and deleted. */

/** Longitude and latitude, degrees. */
export type Position = readonly [longitudeDegrees: number, latitudeDegrees: number];

/** GeoJSON of a footprint; each ring is closed. */
export type FootprintGeometry =
  | { readonly type: 'Polygon'; readonly coordinates: readonly (readonly Position[])[] }
  | {
      readonly type: 'MultiPolygon';
      readonly coordinates: readonly (readonly (readonly Position[])[])[];
    };

/** Old records carry an empty one, so nothing in it is certain. */
export interface Checksum {
  readonly Value?: string;
  /** `MD5` (32 hexadecimal digits) or `BLAKE3` (64). */
  readonly Algorithm?: string;
  readonly ChecksumDate?: string;
  readonly [other: string]: unknown;
}

/** One entry of Attributes; `@odata.type` is `#OData.CSC.<ValueType>Attribute`. */
export interface ProductAttribute {
  readonly Name: string;
  readonly Value?: unknown;
  readonly [other: string]: unknown;
}

/** A way to fetch the product. */
export interface ProductLocation {
  /** `Extracted` (the folder) or `Compressed` (the archive). */
  readonly FormatType?: string;
  readonly Checksum?: readonly Checksum[];
  readonly [other: string]: unknown;
}

/** The fields every published product has. Dates are ISO 8601, UTC, six fractional digits. */
export interface WellKnownFields {
  readonly '@odata.mediaContentType': string;
  /** A GUID. */
  readonly Id: string;
  readonly Name: string;
  readonly ContentType: string;
  /** Bytes; may exceed 32 bits. */
  readonly ContentLength: number;
  readonly OriginDate: string;
  readonly PublicationDate: string;
  readonly ModificationDate: string;
  readonly Online: boolean;
  /** `9999-12-31T23:59:59.999999Z` for never; empty in old records. */
  readonly EvictionDate: string;
  readonly S3Path: string;
  readonly Checksum: readonly Checksum[];
  readonly ContentDate: { readonly Start: string; readonly End: string };
  /** `geography'SRID=4326;<WKT>'`; null for auxiliary files. */
  readonly Footprint: string | null;
  /** The same geometry as Footprint in GeoJSON. */
  readonly GeoFootprint: { readonly type: string; readonly coordinates: readonly unknown[] } | null;
  readonly Attributes: readonly ProductAttribute[];
  readonly Assets: readonly unknown[];
  readonly Locations: readonly ProductLocation[];
}

interface UnknownFields {
  readonly [other: string]: unknown;
}

/** A product record of any origin and age: only Id and Name are certain. */
export type CatalogueProduct = Pick<WellKnownFields, 'Id' | 'Name'> &
  Partial<Omit<WellKnownFields, 'Id' | 'Name'>> &
  UnknownFields;

/** A product as it is published today, with every well-known field. */
export interface PublishedProduct extends WellKnownFields, UnknownFields {
  readonly GeoFootprint: FootprintGeometry | null;
}

/** The causes of deletion that are documented, and the one that only live answers show. */
export const deletionCauses = [
  'Duplicated product',
  'Missing checksum',
  'Corrupted product',
  'Obsolete product',
  'Other',
  'Reprocessed product',
] as const;

/** What `@odata.context` says of a deleted product. */
export const deletedProductContext = '$metadata#DeletedProducts(Attributes())/$entity';

type FieldsLostOnDeletion =
  | 'ModificationDate'
  | 'PublicationDate'
  | 'Online'
  | 'EvictionDate'
  | 'S3Path'
  | 'Assets'
  | 'Locations';

/** A deleted product as the DeletedProducts entity shows it. */
export type DeletedProduct = Pick<WellKnownFields, 'Id' | 'Name'> &
  Partial<Omit<WellKnownFields, 'Id' | 'Name' | FieldsLostOnDeletion>> & {
    readonly [Field in FieldsLostOnDeletion]?: never;
  } & {
    readonly '@odata.context': typeof deletedProductContext;
    readonly DeletionDate: string;
    /** One of `deletionCauses` or any other text: the catalogue does not close the list. */
    readonly DeletionCause: string;
  };
