/** Requests to the private listener: queries, cross-site requests, foreign host names, guessed passwords. */
import {
  attackCase,
  type Case,
  type CaseContext,
  type CaseMaker,
  lines,
  oneOf,
  randomBytes,
  refusedLogin,
  request,
} from '../case.ts';
import { framingMakers } from './framing.ts';
import { headerMakers } from './headers.ts';
import { loginMakers } from './logins.ts';
import { requestLineMakers } from './request-lines.ts';

type Weighted = readonly (readonly [weight: number, CaseMaker])[];

/** 422 is the catalogue's status for invalid parameters, 501 for $search; 503 is for slow queries and a full queue. */
const queryStatuses = [200, 400, 404, 422, 431, 501, 503];

const paths: readonly string[] = [
  ...['/odata/v1/Products', '/odata/v1/DeletedProducts', '/odata/v1/Products(x)', '/odata/v1/'],
  ...['/odata', '/odata/v1/$metadata', '/api/products', '/api/notifications', '/api/summaries'],
  ...['/api/coverage', '/api/status', '/api/openapi.json', '/api/', '/metrics', '/healthz'],
  ...['/readyz', '/', '/nowhere'],
];

const odataNames = [
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

const apiNames = [
  ...['filter', 'limit', 'cursor', 'orderby', 'direction', 'record', 'summary', 'deleted', 'ackId'],
  ...['productId', 'name', 'event', 'subscription', 'since', 'until', 'after', 'before', 'order'],
  ...['kind', 'x'],
];

export const values: readonly string[] = [
  ...['', '0', '1', '-1', '1001', '9'.repeat(30), '1e9', 'NaN', 'true', 'false', 'asc'],
  ...['Name desc', 'x,y', 'ContentDate/Start asc', 'PublicationDate desc', 'Attributes'],
  ...['Assets,Attributes', '*', '**', '?', '2026-01-01', '2026-01-01T00:00:00Z', '9999-99-99'],
  ...['-1-1-1', 'created,deleted', '\u0000', '../..', "' or 1=1 --", '{}', '[]', '%', '\u202e'],
  ...['x'.repeat(5_000), '*'.repeat(2_000), '__proto__'],
];

const filterParts: readonly string[] = [
  ...["contains(Name,'S2')", "Name eq 'x'", "startswith(Name,'')", 'not ', '(', ')', ' and '],
  ...[' or ', "'", 'Online eq true', 'ContentLength gt 1'],
  ...['ContentDate/Start gt 2020-01-01T00:00:00.000Z', ' eq ', ','],
  ...["Attributes/OData.CSC.DoubleAttribute/any(a:a/Name eq 'cloudCover' and a/Value lt 10)"],
  ...['null', '1e999'],
  ...["OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((0 0,1 0,1 1,0 0))')", '%', '_', '\\'],
  ...['\u0000', 'Id eq 00000000-0000-0000-0000-000000000000', '9'.repeat(400), "''''", '/*', '--'],
  ...[';', '\u{1f600}'],
];

/** Cases for a private listener without a password. */
export const openPrivateMakers: Weighted = [
  [40, query([])],
  [10, heavyFilter([])],
  [8, crossSite([])],
  [8, foreignHost],
  [6, change([])],
  ...withStatuses([400, 403, 404, 405, 408, 413, 431], 4),
];

/** Returns the cases for a private listener with a password; `login` has the headers of a browser that logged in. */
export function guardedPrivateMakers(login: readonly string[]): Weighted {
  return [
    [20, query(login)],
    [5, heavyFilter(login)],
    [8, crossSite(login)],
    [5, change(login)],
    [20, withoutLogin],
    ...loginMakers.map(
      ([weight, make]) =>
        [weight, (context: CaseContext) => toPrivate(make(context), [429])] as const,
    ),
    ...withStatuses([400, 403, 404, 405, 408, 413, 431, ...refusedLogin], 4),
  ];
}

function query(login: readonly string[]): CaseMaker {
  return ({ random }) => {
    const path = oneOf(random, paths);
    const names = path.startsWith('/odata') ? odataNames : apiNames;
    const pairs = Array.from({ length: random.integer(0, 4) }, () => {
      const name = oneOf(random, names);
      const isFilter = /filter/.test(name) && random.chance(0.8);
      const text = isFilter ? filterText(random, random.integer(1, 12)) : oneOf(random, values);
      return `${name}=${random.chance(0.9) ? encodeURIComponent(text) : text.replaceAll(/[^!-~]/g, '')}`;
    });
    return get(`private: ${path}`, `${path}?${pairs.join('&')}`, login, queryStatuses);
  };
}

/** Filters that are deep, long, or have a polygon with many points. */
function heavyFilter(login: readonly string[]): CaseMaker {
  return ({ random }) => {
    const count = random.integer(50, 600);
    const corners = Array.from({ length: count }, (_, i) => {
      const angle = (2 * Math.PI * i) / count;
      return `${(9 * Math.cos(angle)).toFixed(3)} ${(9 * Math.sin(angle)).toFixed(3)}`;
    });
    const ring = [...corners, corners[0]].join(',');
    const filter = oneOf(random, [
      `${'('.repeat(count)}Online eq true${')'.repeat(count)}`,
      `${'not '.repeat(count)}Online eq true`,
      Array.from({ length: Math.min(count, 150) }, () => "contains(Name,'x')").join(' or '),
      `OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${ring}))')`,
      `contains(Name,'${'%25'.repeat(count)}')`,
    ]);
    const target = `/odata/v1/Products?$filter=${encodeURI(filter)}&$top=1000&$count=true`;
    return get('private: heavy filter', target, login, queryStatuses);
  };
}

/** Request of a browser on behalf of another site. */
function crossSite(login: readonly string[]): CaseMaker {
  return ({ random }) => {
    const headers = oneOf(random, [
      ['Sec-Fetch-Site: cross-site'],
      ['Sec-Fetch-Site: same-site'],
      ['Sec-Fetch-Site: same-origin, cross-site'],
      ['Origin: https://evil.example'],
      ['Origin: null'],
      ['Origin: http://localhost.evil.example', 'Sec-Fetch-Site: same-origin'],
    ]);
    return get('private: cross-site', oneOf(random, paths), [...login, ...headers], [403]);
  };
}

/** Foreign host name that resolves to this machine (DNS rebinding); health checks and metrics are included. */
function foreignHost({ random }: CaseContext): Case {
  const host = oneOf(random, [
    ...['evil.example', 'localhost.evil.example', '127.0.0.1.nip.io', '10.0.0.1', '[::2]', 'x:1'],
    ...['127.0.0.1@evil.example', 'localhost:1:2', 'localhost.', 'LOCALHOST.example', '0'],
    ...['2130706433'],
  ]);
  const first = `GET ${oneOf(random, paths)} HTTP/1.1`;
  return attackCase('private: foreign host', [lines(first, `Host: ${host}`)], [400, 403]);
}

function change(login: readonly string[]): CaseMaker {
  return ({ random }) => {
    const method = oneOf(random, [
      'POST',
      'PUT',
      'PATCH',
      'DELETE',
      'OPTIONS',
      'PROPFIND',
      'TRACE',
    ]);
    const type = oneOf(random, [
      'text/plain',
      'application/json',
      'multipart/form-data; boundary=x',
    ]);
    const headers = [...login, `Content-Type: ${type}`];
    const usual = get('private: change', '', [], [405]);
    return {
      ...usual,
      pieces: [request({ method, target: oneOf(random, paths), headers, body: '{}' })],
    };
  };
}

function withoutLogin({ random }: CaseContext): Case {
  const guarded = paths.filter((path) => !['/healthz', '/readyz'].includes(path));
  return get('private: no login', oneOf(random, guarded), [], refusedLogin);
}

/** Adds the cases of malformed HTTP. */
function withStatuses(statuses: readonly number[], share: number): Weighted {
  const makers = [...framingMakers, ...headerMakers, ...requestLineMakers];
  return makers.map(([weight, make]) => [
    weight / share,
    (context: CaseContext) => toPrivate(make(context), statuses),
  ]);
}

function toPrivate(made: Case, statuses: readonly number[]): Case {
  // Some paths, such as the root, exist only on the private listener.
  const hasPath = /^(?:target|request line)/.test(made.name);
  const all = hasPath ? [200, ...statuses] : statuses;
  return { ...made, statuses: [...new Set([...made.statuses, ...all])] };
}

function filterText(random: CaseContext['random'], parts: number): string {
  const texts = Array.from({ length: parts }, () => oneOf(random, filterParts));
  return random.chance(0.1) ? randomBytes(random, 40).toString('latin1') : texts.join('');
}

function get(
  name: string,
  target: string,
  headers: readonly string[],
  statuses: readonly number[],
): Case {
  const pieces = [request({ method: 'GET', target, headers })];
  return attackCase(name, pieces, statuses, { sender: 'authenticated' });
}
