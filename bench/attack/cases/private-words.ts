/** Paths, parameters and values that queries to the private listener are put together from. */

export const paths: readonly string[] = [
  ...[
    '/odata/v1/Products',
    '/odata/v1/DeletedProducts',
    '/odata/v1/Products(x)',
    '/odata/v1/',
    '/odata',
  ],
  ...[
    '/odata/v1/$metadata',
    '/api/products',
    '/api/notifications',
    '/api/summaries',
    '/api/coverage',
  ],
  ...[
    '/api/status',
    '/api/openapi.json',
    '/api/',
    '/metrics',
    '/healthz',
    '/readyz',
    '/',
    '/nowhere',
  ],
];

export const filterParts: readonly string[] = [
  ...[
    "contains(Name,'S2')",
    "Name eq 'x'",
    "startswith(Name,'')",
    'not ',
    '(',
    ')',
    ' and ',
    ' or ',
    "'",
  ],
  ...[
    'Online eq true',
    'ContentLength gt 1',
    'ContentDate/Start gt 2020-01-01T00:00:00.000Z',
    ' eq ',
    ',',
  ],
  ...[
    "Attributes/OData.CSC.DoubleAttribute/any(a:a/Name eq 'cloudCover' and a/Value lt 10)",
    'null',
    '1e999',
  ],
  ...[
    "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((0 0,1 0,1 1,0 0))')",
    '%',
    '_',
    '\\',
    '\u0000',
  ],
  ...[
    'Id eq 00000000-0000-0000-0000-000000000000',
    '9'.repeat(400),
    "''''",
    '/*',
    '--',
    ';',
    '\u{1f600}',
  ],
];

export const odataNames = [
  '$filter',
  '$top',
  '$skip',
  '$orderby',
  '$expand',
  '$count',
  '$select',
  '$search',
  'x',
];
export const apiNames = [
  ...['filter', 'limit', 'cursor', 'orderby', 'direction', 'record', 'summary', 'deleted', 'ackId'],
  ...[
    'productId',
    'name',
    'event',
    'subscription',
    'since',
    'until',
    'after',
    'before',
    'order',
    'kind',
    'x',
  ],
];
export const values: readonly string[] = [
  ...[
    '',
    '0',
    '1',
    '-1',
    '1001',
    '9'.repeat(30),
    '1e9',
    'NaN',
    'true',
    'false',
    'asc',
    'Name desc',
    'x,y',
  ],
  ...[
    'ContentDate/Start asc',
    'PublicationDate desc',
    'Attributes',
    'Assets,Attributes',
    '*',
    '**',
    '?',
  ],
  ...[
    '2026-01-01',
    '2026-01-01T00:00:00Z',
    '9999-99-99',
    '-1-1-1',
    'created,deleted',
    '\u0000',
    '../..',
  ],
  ...["' or 1=1 --", '{}', '[]', '%', '\u202e', 'x'.repeat(5_000), '*'.repeat(2_000), '__proto__'],
];
