/**
 * STAC properties of products: the value of each one in an item, and its conditions in the filter language of the
 * catalogue. One table for items, queryables and CQL2, so that a condition always matches the value that is shown.
 */
import { AppError } from '../../core/terms/app-error.ts';
import { firstDateUs, formatDateUs, readDateUs } from '../../core/terms/dates.ts';
import {
  and,
  attributeOf,
  type Comparisons,
  type Expression,
  fieldOf,
  not,
  or,
  textField,
} from '../../filter/builder.ts';
import { compileFilter } from '../../filter/evaluate.ts';
import { publishedAttributes, radarCollections } from '../../filter/fields.ts';
import type { AttributeKind, ComparisonOperator } from '../../filter/filter-tree.ts';
import { attributeIs } from '../../filter/product-conditions.ts';
import type { ProductView } from '../../filter/product-view.ts';
import { asNumber } from '../../filter/values.ts';
import { readRfc3339 } from './areas.ts';
import { collectionId, collectionOfView, inCollection, readCollectionId } from './collections.ts';

export type StacValue = string | number | boolean;

/** JSON types of the values; a `date-time` is a text of ISO 8601. */
type ValueType = 'string' | 'number' | 'integer' | 'boolean' | 'date-time';

const typeOfKind = {
  String: 'string',
  Double: 'number',
  Integer: 'integer',
  DateTimeOffset: 'date-time',
  Boolean: 'boolean',
} as const satisfies Record<AttributeKind, ValueType>;

/** Comparisons; `<>` is a negated `=`. */
export type StacOperator = Exclude<ComparisonOperator, 'ne'>;

/** Values of products, and their conditions. */
interface Source {
  type: ValueType;
  /** The possible values, where they are few. */
  values?: readonly string[];
  /** Value in an item; undefined for a product without one. */
  valueIn(view: ProductView): StacValue | undefined;
  /** Matches products with a value; null: all products have one. */
  exists: Expression | null;
  /** Compares parts of a text; absent if the filter language cannot. */
  text?: ReturnType<typeof textField> & { field: string };
  /** The order of the values in the catalogue is another one. */
  isUnordered?: true;
  /** Matches products whose value fulfils the comparison, and none without a value (CQL2, 6.2). */
  compare(operator: StacOperator, value: StacValue): Expression;
}

/** Its comparisons throw `invalid` for a value of another type, and for one that the index cannot answer. */
export interface StacProperty extends Source {
  name: string;
  title: string;
}

/** Matches all products, as every product has an id. */
export const everyProduct: Expression = textField('Id').ne('');
/** Matches no product. */
export const noProduct: Expression = textField('Id').eq('');

/** The first date of the filter language. */
const firstDate = formatDateUs(firstDateUs);

const extensionVersions = {
  eo: 'v1.1.0',
  grid: 'v1.1.0',
  processing: 'v1.2.0',
  sar: 'v1.0.0',
  sat: 'v1.0.0',
  view: 'v1.0.0',
};

/** Returns the URLs of the extensions whose properties are used (stac-extensions.github.io). */
export function extensionsOf(properties: Readonly<Record<string, unknown>>): string[] {
  const names = Object.keys(properties);
  return Object.entries(extensionVersions)
    .filter(([prefix]) => names.some((name) => name.startsWith(`${prefix}:`)))
    .map(
      ([prefix, version]) => `https://stac-extensions.github.io/${prefix}/${version}/schema.json`,
    );
}

const anyOf = (text: Pick<Comparisons<string>, 'eq'>, values: readonly string[]) =>
  or(...values.map((value) => text.eq(value)));

/** Products of a radar with all values that the extension `sar` requires. Others have no properties `sar:*`. */
const radarProducts = and(
  anyOf(textField('Collection/Name'), radarCollections),
  attributeOf('operationalMode', 'String').ge(''),
  attributeOf('productType', 'String').ge(''),
  anyOf(attributeOf('polarisationChannels', 'String'), [
    ...['HH', 'HV', 'VH', 'VV'],
    ...['HH&HV', 'HV&HH', 'VH&VV', 'VV&VH'],
  ]),
);

export const isRadarProduct = compileFilter(radarProducts.tree);

/** Properties of items that CQL2 can compare, in the order of the item. */
export const stacProperties: readonly StacProperty[] = [
  named('title', 'Name of the product', {
    ...ofField('Name', 'String'),
    text: { ...textField('Name'), field: 'Name' },
  }),
  named('datetime', 'Start of sensing', ofField('ContentDate/Start', 'DateTimeOffset')),
  named('start_datetime', 'Start of sensing', ofField('ContentDate/Start', 'DateTimeOffset')),
  named('end_datetime', 'End of sensing', ofField('ContentDate/End', 'DateTimeOffset')),
  named('created', 'Time of publication', ofField('PublicationDate', 'DateTimeOffset')),
  named('updated', 'Time of the last modification', ofField('ModificationDate', 'DateTimeOffset')),
  named('platform', 'Satellite, such as sentinel-2a', ofPlatform()),
  named('constellation', 'Mission, such as sentinel-2', ofLowerCase('platformShortName')),
  named('eo:cloud_cover', 'Cloud cover in percent', ofAttribute('cloudCover', 'Double', [0, 100])),
  named('sat:absolute_orbit', 'Orbit number', ofAttribute('orbitNumber', 'Integer', [1, 1e9])),
  named(
    'sat:relative_orbit',
    'Relative orbit',
    ofAttribute('relativeOrbitNumber', 'Integer', [1, 1e9]),
  ),
  named(
    'sat:orbit_state',
    'Orbit direction',
    ofLowerCase('orbitDirection', ['ascending', 'descending']),
  ),
  named('sar:instrument_mode', 'Acquisition mode', ofRadar('operationalMode')),
  named('sar:product_type', 'Product type', ofRadar('productType')),
  named('view:off_nadir', 'Off-nadir angle', ofAttribute('offNadir', 'Double', [0, 90])),
  named('view:sun_azimuth', 'Sun azimuth', ofAttribute('sunAzimuthAngle', 'Double', [0, 360])),
  named(
    'view:sun_elevation',
    'Sun elevation',
    ofAttribute('sunElevationAngle', 'Double', [-90, 90]),
  ),
  named('grid:code', 'Tile, such as MGRS-31UFR', ofTile()),
  named('processing:level', 'Level', ofAttribute('processingLevel', 'String')),
  named('processing:facility', 'Processing centre', ofAttribute('processingCenter', 'String')),
  named('processing:version', 'Processor version', ofAttribute('processorVersion', 'String')),
  named('processing:datetime', 'Processing time', ofAttribute('processingDate', 'DateTimeOffset')),
];

/** Properties of filters; those that items do not show have the prefix `catalogue:`. */
export const queryableProperties: readonly StacProperty[] = [
  named('id', 'Id of the product', { ...ofField('Id', 'String'), exists: null }),
  ...stacProperties,
  named(
    'catalogue:Online',
    'True if the product can be downloaded at once',
    ofField('Online', 'Boolean'),
  ),
  ...publishedAttributes.map(({ name, kind }) =>
    named(`catalogue:${name}`, `Attribute ${name}`, ofAttribute(name, kind)),
  ),
];

/** The collection is not a value of the record: it is compared by its two parts. */
export const collectionProperty: StacProperty = named(
  'collection',
  'Collection, such as SENTINEL-2.S2MSI2A',
  {
    ...{ type: 'string', exists: null },
    valueIn: (view) => collectionId(collectionOfView(view)),
    ...equality((id) => {
      const key = readCollectionId(id);
      return key === null ? noProduct : inCollection(key);
    }),
  },
);

function named(name: string, title: string, source: Source): StacProperty {
  const compare: Source['compare'] = (operator, value) => {
    requireType(value, source.type, name);
    if (source.isUnordered && operator !== 'eq') {
      throw new AppError('invalid', `${name} can only be compared with =, <> and IN.`);
    }
    return source.compare(operator, value);
  };
  return { ...source, name, title, compare };
}

const longestText = 1_000;

/** Throws `invalid` for a value of another type, and for a time that does not exist. */
function requireType(value: StacValue, type: ValueType, name: string): void {
  if (type === 'date-time' && typeof value === 'string') {
    readRfc3339(value);
    return;
  }
  const [isValid, expected] = {
    string: [
      typeof value === 'string' && value.length <= longestText,
      "a text in single quotes, such as 'ascending'",
    ],
    number: [Number.isFinite(value), 'a number, such as 20'],
    integer: [Number.isFinite(value), 'a number, such as 20'],
    boolean: [typeof value === 'boolean', 'TRUE or FALSE'],
    'date-time': [false, "a time, such as TIMESTAMP('2026-11-20T06:00:00Z')"],
  }[type];
  if (!isValid) throw new AppError('invalid', `${name} can only be compared with ${expected}.`);
}

/** Matches products with any value of a kind. */
function existing(
  kind: AttributeKind,
  { eq, ge }: Pick<Comparisons<StacValue>, 'eq' | 'ge'>,
): Expression {
  if (kind === 'Boolean') return or(eq(true), eq(false));
  if (kind === 'String') return ge('');
  return ge(kind === 'DateTimeOffset' ? firstDate : -Number.MAX_VALUE);
}

function ofField(field: string, kind: AttributeKind): Source {
  const comparisons: Comparisons<StacValue> = fieldOf(field, kind);
  return {
    type: typeOfKind[kind],
    exists: existing(kind, comparisons),
    valueIn: (view) => {
      if (kind === 'Boolean') return view.online ?? undefined;
      if (kind === 'String') return view.text(field) ?? undefined;
      return dateText(view.dateUs(field));
    },
    compare: (operator, value) => comparisons[operator](value),
  };
}

/** An attribute with the same values as in the catalogue. Numbers outside of the range of its schema are absent. */
function ofAttribute(
  name: string,
  kind: AttributeKind,
  range?: readonly [min: number, max: number],
): Source {
  const type = typeOfKind[kind];
  const attribute: Comparisons<StacValue> = attributeOf(name, kind);
  const within = range && and(attribute.ge(range[0]), attribute.le(range[1]));
  return {
    type,
    exists: within ?? existing(kind, attribute),
    valueIn: (view) => {
      const value = attributeValue(view.attribute(name), type);
      if (range === undefined || typeof value !== 'number') return value;
      const isWhole = type !== 'integer' || Number.isInteger(value);
      return isWhole && value >= range[0] && value <= range[1] ? value : undefined;
    },
    compare: (operator, value) => {
      if (kind === 'String' && operator === 'eq') return attributeIs(name, String(value));
      const condition = attribute[operator](value);
      return within === undefined ? condition : and(within, condition);
    },
  };
}

/** An attribute that only means the same in products of radar instruments. */
function ofRadar(attribute: string): Source {
  const { valueIn, compare, ...rest } = ofAttribute(attribute, 'String');
  return {
    ...rest,
    valueIn: (view) => (isRadarProduct(view) ? valueIn(view) : undefined),
    exists: radarProducts,
    compare: (operator, value) => and(radarProducts, compare(operator, value)),
  };
}

/** Compares values that STAC writes differently from the catalogue with `=`, `<>` and IN. */
function equality(equals: (text: string) => Expression): Pick<Source, 'isUnordered' | 'compare'> {
  return { isUnordered: true, compare: (_operator, value) => equals(String(value)) };
}

/** Texts of ASCII without lower-case letters, so that lower case can be reversed. */
export function isUpperCase(text: unknown): text is string {
  return typeof text === 'string' && /^[ -`{-~]*$/.test(text);
}

/** An upper-case attribute, with any value, or one of a few. */
function ofLowerCase(name: string, values?: readonly string[]): Source {
  const equals = (text: string) =>
    values === undefined || values.includes(text) ? lowerCaseEquals(name, text) : noProduct;
  return {
    ...{ type: 'string', ...(values && { values }) },
    exists: values ? or(...values.map(equals)) : attributeOf(name, 'String').ge(''),
    valueIn: (view) => {
      const value = view.attribute(name);
      const shown = isUpperCase(value) ? value.toLowerCase() : undefined;
      return values === undefined ? shown : values.find((one) => one === shown);
    },
    ...equality(equals),
  };
}

function lowerCaseEquals(name: string, text: string): Expression {
  const upper = text.toUpperCase();
  const isPossible = isUpperCase(upper) && text === upper.toLowerCase();
  return isPossible ? attributeOf(name, 'String').eq(upper) : noProduct;
}

/** The name of the mission, and then the letter of the satellite, if it has one. */
function ofPlatform(): Source {
  const name = 'platformShortName';
  const letter = attributeOf('platformSerialIdentifier', 'String');
  const hasLetter = anyOf(letter, [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']);
  const mission = ofLowerCase(name);
  return {
    ...mission,
    valueIn: (view) => {
      const last = view.attribute('platformSerialIdentifier');
      const isLetter = typeof last === 'string' && /^[A-Z]$/.test(last);
      const shown = mission.valueIn(view);
      return shown === undefined ? undefined : `${shown}${isLetter ? last.toLowerCase() : ''}`;
    },
    ...equality((text) => {
      const whole = and(lowerCaseEquals(name, text), not(hasLetter));
      if (!/[a-z]$/.test(text)) return whole;
      const starts = lowerCaseEquals(name, text.slice(0, -1));
      return or(whole, and(starts, letter.eq(text.slice(-1).toUpperCase())));
    }),
  };
}

/** A tile of the Military Grid Reference System. */
function ofTile(): Source {
  const tile = attributeOf('tileId', 'String');
  return {
    ...{ type: 'string', exists: tile.ge('') },
    valueIn: (view) => {
      const value = view.attribute('tileId');
      return typeof value === 'string' && /^\d\d[A-Z]{3}$/.test(value)
        ? `MGRS-${value}`
        : undefined;
    },
    ...equality((text) => {
      const [, id] = /^MGRS-(\d\d[A-Z]{3})$/.exec(text) ?? [];
      return id === undefined ? noProduct : tile.eq(id);
    }),
  };
}

function attributeValue(value: unknown, type: ValueType): StacValue | undefined {
  if (type === 'number' || type === 'integer') return asNumber(value) ?? undefined;
  if (type === 'boolean') return typeof value === 'boolean' ? value : undefined;
  if (typeof value !== 'string') return undefined;
  return type === 'string' ? value : dateText(readDateUs(value));
}

function dateText(us: number | null): string | undefined {
  return us === null ? undefined : formatDateUs(us);
}
