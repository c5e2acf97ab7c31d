/** Bodies of queries: limits of size, depth, parts and memory, before anything is parsed. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { useRealThreads } from '../../helpers/threads-in-process.ts';
import { openConsole } from './console-context.ts';

useRealThreads();

const search = '/stac/search';
const list = '/odata/v1/Products/OData.CSC.FilterList';

/** Fills a list with copies of an item up to about 60,000 characters. */
const filled = (before: string, item: string, after: string) =>
  `${before}${Array(Math.floor(60_000 / (item.length + 1))).fill(item)}${after}`;

const nested = (open: string, close: string, levels = 5_000) =>
  `{"filter":${open.repeat(levels)}1${close.repeat(levels)}}`;

describe('a hostile body', () => {
  it.each([
    ['wrong types in bbox', search, filled('{"bbox":[', '""', ']}'), 400],
    ['numbers for ids', search, filled('{"ids":[', '1', ']}'), 400],
    ['nothing in a filter', search, filled('{"filter":{"op":"or","args":[', 'null', ']}}'), 400],
    ['deep objects', search, nested('{"a":', '}'), 400],
    ['deep negations', search, nested('{"op":"not","args":[', ']}', 2_000), 400],
    ['unknown members', search, filled('{', '"a":1', '}'), 400],
    ['480 kB of wrong types', search, filled('{"ids":[', '1', ']}').padEnd(480_000), 413],
    ['numbers for names', list, filled('{"FilterProducts":[', '1', ']}'), 422],
    ['names without text', list, filled('{"FilterProducts":[', '{"Name":1}', ']}'), 422],
  ])('of %s is refused briefly', async (_title, path, body, status) => {
    const { get } = await openConsole();
    const answer = await get(path, { method: 'POST', body });
    expect(answer.status).toBe(status);
    expect(answer.text.length).toBeLessThan(1_500);
    const faults = status === 422 ? answer.json.detail : (answer.json.errors ?? []);
    expect(faults.length).toBeLessThan(2);
  });

  it.each([search, list])('in an encoding is refused by %s with 415', async (path) => {
    const { get } = await openConsole();
    const headers = { 'Content-Encoding': 'gzip' };
    expect((await get(path, { method: 'POST', headers, body: '{}' })).status).toBe(415);
  });
});

/** A polygon whose corners alternate between two distances from the origin, in degrees. */
const star = (corners: number, inner: number) => {
  const ring = Array.from({ length: corners }, (_, i) => {
    const angle = (2 * Math.PI * i) / corners;
    const radius = i % 2 === 0 ? 40 : inner;
    return [Math.cos(angle), Math.sin(angle)].map((value) => Number((radius * value).toFixed(4)));
  });
  return { type: 'Polygon', coordinates: [[...ring, ring[0]]] };
};

const condition = { op: '<', args: [{ property: 'eo:cloud_cover' }, 101] };
const nestedConditions = Array.from({ length: 45 }).reduce<object>(
  (filter) => ({ op: 'and', args: [filter, condition] }),
  condition,
);

it.each<[string, object]>([
  ['a thousand ids', { ids: Array.from({ length: 1_000 }, (_, i) => `an-id-${i}`) }],
  ['ninety nested conditions', { filter: nestedConditions }],
  ['a rough outline of 3,400 corners', { intersects: star(3_400, 39.9) }],
  ['a star of 3,400 corners', { intersects: star(3_400, 1) }],
])('a large body is accepted: %s', async (_title, body) => {
  const { get } = await openConsole();
  const answer = await get(search, { method: 'POST', body: JSON.stringify(body) });
  expect(answer.status).toBe(200);
});

it('bodies together have at most 1 MiB: beyond it, 503 with Retry-After; afterwards they are accepted', async () => {
  const { get, port } = await openConsole();
  const agent = new Agent();
  onTestFinished(() => agent.destroy());
  // The last byte of each is missing.
  const open = Array.from({ length: 20 }, () => {
    const headers = { 'Content-Length': 65_000 };
    const sent = request({ port, path: search, method: 'POST', agent, headers });
    sent.write(' '.repeat(64_999));
    return { sent, answer: once(sent, 'response').then(([answer]) => answer) };
  });
  const refused = await Promise.race(open.map(({ answer }) => answer));
  expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '5']);
  for (const { sent } of open) sent.end(' ');
  const answers = await Promise.all(open.map(({ answer }) => answer));
  const statuses = new Set(answers.map(({ statusCode }) => statusCode));
  expect(statuses).toEqual(new Set([400, 503]));
  const later = await get(search, { method: 'POST', body: ' '.repeat(65_000) });
  expect([later.status, later.json.detail]).toEqual([400, 'The body is not JSON.']);
});
