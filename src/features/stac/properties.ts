/**
 * STAC properties of products: the value of each one in an item, and its conditions in the filter language of the
 * catalogue. One table for items, queryables and CQL2, so that a condition always matches the value that is shown.
 */

import { AppError } from '../../core/terms/app-error.ts';
import { firstDateUs, formatDateUs, readDateUs } from '../../core/terms/dates.ts';
import {
  and,
  attributeOf,
  dateField,
  type Expression,
  expression,
  or,
  textField,
} from '../../filter/builder.ts';
import { compileFilter } from '../../filter/evaluate.ts';
import { publishedAttributes } from '../../filter/fields.ts';
import type { AttributeKind, ComparisonOperator } from '../../filter/filter-tree.ts';
import { radarCollections } from '../../filter/missions.ts';
import { attributeIs } from '../../filter/product-conditions.ts';
import type { ProductView } from '../../filter/product-view.ts';
import { asNumber } from '../../filter/values.ts';
import {
  compareAmong,
  lowerCase,
  lowerCaseWithLetter,
  type MappedText,
  oneOfLowerCase,
  prefixed,
} from './conditions.ts';
import { isRfc3339, readRfc3339 } from './interval.ts';

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

export interface StacProperty {
  name: string;
  title: string;
  type: ValueType;
  /** The possible values, where they are few. */
  values?: readonly string[];
  /** Value in an item; undefined for a product without one. */
  valueIn(view: ProductView): StacValue | undefined;
  /** Matches products with a value; null: all products have one. */
  exists: Expression | null;
  /**
   * Matches products whose value fulfils the comparison, and none without a value (CQL2, 6.2). Throws `invalid` for a
   * value of another type, or a comparison that the index cannot answer.
   */
  compare(operator: ComparisonOperator, value: StacValue): Expression;
  /** Compares parts of a text; absent if the filter language cannot. */
  text?: ReturnType<typeof textField> & { field: string };
}

const longestText = 1_000;

/** The first date of the filter language. */
const firstDate = formatDateUs(firstDateUs);

/** Names with the version of the schema that they refer to (stac-extensions.github.io). */
const extensionVersions = {
  eo: 'v1.1.0',
  grid: 'v1.1.0',
  processing: 'v1.2.0',
  sar: 'v1.0.0',
  sat: 'v1.0.0',
  view: 'v1.0.0',
} as const;

/** Returns the URLs of the extensions whose properties are used. */
export function extensionsOf(properties: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(extensionVersions).flatMap(([prefix, version]) => {
    const isUsed = Object.keys(properties).some((name) => name.startsWith(`${prefix}:`));
    return isUsed ? [`https://stac-extensions.github.io/${prefix}/${version}/schema.json`] : [];
  });
}

const anyOf = (text: Pick<ReturnType<typeof textField>, 'eq'>, values: readonly string[]) =>
  or(...values.map((value) => text.eq(value)));

/** Products of a radar with all values that the extension `sar` requires. Others have no properties `sar:*`. */
const radarProducts = and(
  anyOf(textField('Collection/Name'), radarCollections),
  attributeExists('operationalMode', 'String'),
  attributeExists('productType', 'String'),
  anyOf(attributeOf('polarisationChannels', 'String'), [
    ...['HH', 'HV', 'VH', 'VV'],
    ...['HH&HV', 'HV&HH', 'VH&VV', 'VV&VH'],
  ]),
);

export const isRadarProduct = compileFilter(radarProducts.tree);

const orbitStates = ['ascending', 'descending'];

/** Properties of items that CQL2 can compare, in the order of the item. */
export const stacProperties: readonly StacProperty[] = [
  named('title', 'Name of the product', ofText('Name')),
  named('datetime', 'Start of sensing', ofDate('ContentDate/Start')),
  named('start_datetime', 'Start of sensing', ofDate('ContentDate/Start')),
  named('end_datetime', 'End of sensing', ofDate('ContentDate/End')),
  named('created', 'Time of publication', ofDate('PublicationDate')),
  named('updated', 'Time of the last modification', ofDate('ModificationDate')),
  named(
    'platform',
    'Satellite, such as sentinel-2a',
    ofMapped(lowerCaseWithLetter('platformShortName', 'platformSerialIdentifier')),
  ),
  named('constellation', 'Mission, such as sentinel-2', ofMapped(lowerCase('platformShortName'))),
  named('eo:cloud_cover', 'Cloud cover in percent', ofAttribute('cloudCover', 'Double', [0, 100])),
  named('sat:absolute_orbit', 'Orbit number', ofAttribute('orbitNumber', 'Integer', [1, 1e9])),
  named(
    'sat:relative_orbit',
    'Relative orbit',
    ofAttribute('relativeOrbitNumber', 'Integer', [1, 1e9]),
  ),
  named('sat:orbit_state', 'Orbit direction', {
    ...ofMapped(oneOfLowerCase('orbitDirection', orbitStates)),
    values: orbitStates,
  }),
  named('sar:instrument_mode', 'Acquisition mode', ofRadar('operationalMode')),
  named('sar:product_type', 'Product type', ofRadar('productType')),
  named('view:off_nadir', 'Off-nadir angle', ofAttribute('offNadir', 'Double', [0, 90])),
  named('view:sun_azimuth', 'Sun azimuth', ofAttribute('sunAzimuthAngle', 'Double', [0, 360])),
  named(
    'view:sun_elevation',
    'Sun elevation',
    ofAttribute('sunElevationAngle', 'Double', [-90, 90]),
  ),
  named(
    'grid:code',
    'Tile, such as MGRS-31UFR',
    ofMapped(prefixed('tileId', 'MGRS-', /^\d\d[A-Z]{3}$/)),
  ),
  named('processing:level', 'Level', ofAttribute('processingLevel', 'String')),
  named('processing:facility', 'Processing centre', ofAttribute('processingCenter', 'String')),
  named('processing:version', 'Processor version', ofAttribute('processorVersion', 'String')),
  named('processing:datetime', 'Processing time', ofAttribute('processingDate', 'DateTimeOffset')),
];

/** Prefix of the catalogue's own attributes, which CQL2 can compare although items do not show them. */
const attributePrefix = 'catalogue:';

/** Attributes and properties of the catalogue under their own names, such as `catalogue:timeliness`. */
const catalogueProperties: readonly StacProperty[] = [
  named(`${attributePrefix}Online`, 'True if the product can be downloaded at once', ofOnline()),
  ...publishedAttributes.map(({ name, kind }) =>
    named(`${attributePrefix}${name}`, `Attribute ${name}`, ofAttribute(name, kind)),
  ),
];

export const queryableProperties: readonly StacProperty[] = [
  named('id', 'Id of the product', ofId()),
  ...stacProperties,
  ...catalogueProperties,
];

type Unnamed = Omit<StacProperty, 'name' | 'title' | 'compare'> & {
  compare(operator: ComparisonOperator, value: StacValue, name: string): Expression;
};

function named(name: string, title: string, { compare, ...rest }: Unnamed): StacProperty {
  return { name, title, ...rest, compare: (operator, value) => compare(operator, value, name) };
}

type Comparing = (operator: ComparisonOperator, value: StacValue, name: string) => Expression;

/** Checks the type of values before the comparison. */
function ofType(
  type: ValueType,
  comparing: Comparing,
  rest: Pick<Unnamed, 'exists' | 'valueIn'>,
): Unnamed {
  return {
    type,
    ...rest,
    compare: (operator, value, name) => {
      const literal = literalOf(value, type, name);
      if (typeof literal !== 'boolean') return comparing(operator, literal, name);
      const equals = (one: boolean) => comparing('eq', one, name);
      return compareAmong([false, true], equals)(operator, literal);
    },
  };
}

/** An absent property fulfils `ne` in the filter language, but not in CQL2. */
function present(exists: Expression, operator: ComparisonOperator, condition: Expression) {
  return operator === 'ne' ? and(exists, condition) : condition;
}

function ofText(field: string): Unnamed {
  const text = textField(field);
  const exists = text.ge('');
  const comparing: Comparing = (operator, value) =>
    present(exists, operator, text[operator](String(value)));
  const valueIn = (view: ProductView) => view.text(field) ?? undefined;
  return { ...ofType('string', comparing, { exists, valueIn }), text: { ...text, field } };
}

function ofId(): Unnamed {
  return ofType('string', (operator, value) => textField('Id')[operator](String(value)), {
    exists: null,
    valueIn: (view) => view.text('Id') ?? undefined,
  });
}

function ofDate(field: string): Unnamed {
  const date = dateField(field);
  const exists = date.ge(firstDate);
  return ofType(
    'date-time',
    (operator, value) => present(exists, operator, date[operator](String(value))),
    { exists, valueIn: (view) => dateText(view.dateUs(field)) },
  );
}

function ofOnline(): Unnamed {
  const comparing = (operator: ComparisonOperator, value: StacValue) =>
    expression({
      node: 'comparison',
      field: 'Online',
      operator,
      literal: { type: 'boolean', value: value === true },
    });
  return ofType('boolean', comparing, {
    exists: or(comparing('eq', true), comparing('eq', false)),
    valueIn: (view) => view.online ?? undefined,
  });
}

/** An attribute with the same values as in the catalogue. Numbers outside of the range of its schema are absent. */
function ofAttribute(
  name: string,
  kind: AttributeKind,
  range?: readonly [min: number, max: number],
): Unnamed {
  const type = typeOfKind[kind];
  const attribute = attributeOf(name, kind);
  const [min, max] = range ?? [];
  const exists =
    min === undefined || max === undefined
      ? attributeExists(name, kind)
      : and(attribute.ge(min), attribute.le(max));
  const comparing: Comparing = (operator, value) => {
    const isText = kind === 'String' && operator === 'eq';
    const condition = isText ? attributeIs(name, String(value)) : attribute[operator](value);
    return range === undefined ? condition : and(exists, condition);
  };
  return ofType(type, comparing, {
    exists,
    valueIn: (view) => {
      const value = attributeValue(view.attribute(name)?.value, type);
      if (range === undefined || typeof value !== 'number') return value;
      const isWhole = type !== 'integer' || Number.isInteger(value);
      return isWhole && value >= range[0] && value <= range[1] ? value : undefined;
    },
  });
}

function attributeExists(name: string, kind: AttributeKind): Expression {
  const { eq, ge } = attributeOf(name, kind);
  if (kind === 'Boolean') return or(eq(true), eq(false));
  if (kind === 'String') return ge('');
  return ge(kind === 'DateTimeOffset' ? firstDate : -Number.MAX_VALUE);
}

function ofMapped({ valueIn, exists, compare }: MappedText): Unnamed {
  const comparing: Comparing = (operator, value, name) => compare(operator, String(value), name);
  return ofType('string', comparing, { exists, valueIn });
}

/** An attribute that only means the same in products of radar instruments. */
function ofRadar(attribute: string): Unnamed {
  const { valueIn, compare, ...rest } = ofAttribute(attribute, 'String');
  return {
    ...rest,
    valueIn: (view) => (isRadarProduct(view) ? valueIn(view) : undefined),
    exists: radarProducts,
    compare: (operator, value, name) => and(radarProducts, compare(operator, value, name)),
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

interface LiteralForm {
  isValid(value: StacValue): boolean;
  expected: string;
}

const numbers: LiteralForm = {
  isValid: (value) => typeof value === 'number' && Number.isFinite(value),
  expected: 'a number, such as 20',
};

const literalForms: Readonly<Record<ValueType, LiteralForm>> = {
  string: {
    isValid: (value) => typeof value === 'string' && value.length <= longestText,
    expected: "a text in single quotes, such as 'ascending'",
  },
  number: numbers,
  integer: numbers,
  boolean: { isValid: (value) => typeof value === 'boolean', expected: 'TRUE or FALSE' },
  'date-time': {
    isValid: (value) => typeof value === 'string' && isRfc3339(value),
    expected: "a time, such as TIMESTAMP('2026-11-20T06:00:00Z')",
  },
};

/** Returns a literal of the type of the property. Throws `invalid`. */
function literalOf(value: StacValue, type: ValueType, name: string): StacValue {
  const { isValid, expected } = literalForms[type];
  if (!isValid(value)) {
    throw new AppError('invalid', `${name} can only be compared with ${expected}.`);
  }
  // Throws for a time that does not exist.
  if (type === 'date-time') readRfc3339(String(value));
  return value;
}
