/** `npm run attack -- queries`: hostile bodies of queries while notifications are pushed. */
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type Benchmark, dirOption, integer } from '../../bench/harness.ts';
import type { Target } from './target.ts';
import {
  heapMegabytes,
  pushesPerSecond,
  renderHarms,
  renderPushes,
  whilePushing,
} from './while-pushing.ts';

const options = {
  connections: integer('N', 'parallel connections', { default: 32, min: 1, max: 150 }),
  seconds: integer('N', 'duration', { default: 30, min: 1, max: 3_600 }),
  dir: dirOption,
};

const search = '/stac/search';
const list = '/odata/v1/Products/OData.CSC.FilterList';

const filled = (before: string, item: string, after: string, bytes = 65_000) =>
  `${before}${Array(Math.floor((bytes - before.length) / (item.length + 1))).fill(item)}${after}`;

const area = (positions: readonly (readonly number[])[]) => {
  const ring = [...positions, positions[0]];
  return JSON.stringify({ intersects: { type: 'Polygon', coordinates: [ring] } });
};

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

/** A valid area, whose check takes long without the limit of steps. */
const ellipse = range(3_500).map((i) => {
  const angle = (2 * Math.PI * i) / 3_500;
  return [60 * Math.cos(angle), 40 * Math.sin(angle)].map((n) => Number(n.toFixed(2)));
});

/** A star: its edges are long, and all of them are near its centre. */
const star = range(3_000).map((i) => {
  const angle = (2 * Math.PI * i) / 3_000;
  const radius = i % 2 === 0 ? 70 : 40;
  return [radius * Math.cos(angle), radius * Math.sin(angle)].map((n) => Number(n.toFixed(3)));
});

const comb = [
  ...range(3_000).map((i) => [i % 2 === 0 ? 80 : 0, Number((i / 20 - 75).toFixed(2))]),
  ...[
    [-10, 75],
    [-10, -75],
  ],
];

const bodies: readonly (readonly [path: string, body: string])[] = [
  [search, filled('{"bbox":[', '""', ']}', 480_000)],
  [search, filled('{"ids":[', '1', ']}')],
  [search, filled('{"sortby":[', '{}', ']}')],
  [search, filled('{"filter":{"op":"or","args":[', '{"op":1}', ']}}', 25_000)],
  [search, filled('{"filter":{"op":"or","args":[', 'null', ']}}', 24_000)],
  [search, `${'['.repeat(30_000)}${']'.repeat(30_000)}`],
  [search, `{"filter":${'{"op":"not","args":['.repeat(3_000)}1${']}'.repeat(3_000)}}`],
  [search, JSON.stringify({ filter: '('.repeat(60_000) })],
  [search, JSON.stringify({ filter: `title LIKE '${'%'.repeat(60_000)}'` })],
  [search, JSON.stringify({ ids: range(1_000).map((i) => `unknown-${i}`) })],
  [search, JSON.stringify({ collections: range(1_000).map((i) => `SENTINEL-2.${i}`) })],
  [search, area(ellipse)],
  [search, area(star)],
  [search, area(comb)],
  [list, filled('{"FilterProducts":[', '1', ']}', 120_000)],
  [list, JSON.stringify({ FilterProducts: range(1_000).map((i) => ({ Name: `${i}` })) })],
];

export const queries: Benchmark<typeof options> = {
  command: 'npm run attack -- queries',
  about: `Sends hostile bodies of queries to its own \`earshot start\` on loopback, which has a heap of
${heapMegabytes} MB: wrong types, deep nesting, intricate areas, long lists. Meanwhile, ${pushesPerSecond} notifications a second are
pushed; each must be answered.`,
  options,
  closing: 'Exit code: 0 no harm, 1 harm, 2 wrong usage.',
  async measure({ connections, seconds }, context) {
    context.progress.show('queries');
    const { result: sent, ...outcome } = await whilePushing(context, {}, (target) =>
      sendBodies(target, { connections, ms: seconds * 1_000 }),
    );
    const unexpected = Object.keys(sent).filter(
      (status) => !/^(?:200|400|413|422|503)$/.test(status),
    );
    const wrong = unexpected.map((status) => `answers of ${status}: ${sent[status]}`);
    const harms = [...wrong, ...outcome.harms];
    return {
      report: { sent, ...outcome, harms },
      text: [renderPushes(outcome, 'answers of queries', JSON.stringify(sent)), renderHarms(harms)],
      hasFailed: harms.length > 0,
    };
  },
};

/** Sends the bodies for some time; returns the number of answers by status, or by error without an answer. */
async function sendBodies(
  { private: { port } }: Target,
  { connections, ms }: { connections: number; ms: number },
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const endMs = performance.now() + ms;
  let next = 0;
  const work = async () => {
    while (performance.now() < endMs) {
      const [path, body] = bodies[next % bodies.length] ?? [search, ''];
      next += 1;
      const status = await post({ port, agent, path }, body);
      counts[status] = (counts[status] ?? 0) + 1;
      // The answer came before the whole body was read.
      if (status === 'EPIPE' || status === 'ECONNRESET') await delay(10);
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  agent.destroy();
  return counts;
}

function post(target: { port: number; agent: Agent; path: string }, body: string): Promise<string> {
  return new Promise((resolve) => {
    const outgoing = request({ ...target, method: 'POST' }, (answer) => {
      answer.resume().once('close', () => resolve(String(answer.statusCode)));
    });
    outgoing.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    outgoing.end(body);
  });
}
