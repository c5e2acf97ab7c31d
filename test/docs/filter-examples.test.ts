/**
 * The examples of filters in docs/reference/filter-examples.md find the stated number of generated products, the same
 * with flags and as an expression, and docs/subscriptions.md shows the output of its commands on these products.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { catchUpIndex } from '../../src/features/products/index-file/index-maintenance.ts';
import { createProductGenerator } from '../../src/sandbox/products/product-generator.ts';
import { runCommand } from '../helpers/fake-io.ts';
import { delivery, withStore } from '../helpers/filled-store.ts';
import { asOnPages, blocks, readPage, sessionsOf, words } from './console-sessions.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const firstMs = Date.UTC(2026, 4, 1);
const page = readPage('reference/filter-examples.md');
const dir = mkdtempSync(join(tmpdir(), 'earshot-page-'));

/**
 * 2,000 products, one published each minute from 2026-05-01T00:00Z on. A day after publication, every 20th is modified,
 * and every 20th from the tenth on is deleted. Every 20th from the fifth on is not online.
 */
function generatedNews() {
  const generator = createProductGenerator({ seed: 7 });
  return Array.from({ length: 2_000 }, (_, i) => {
    const publishedMs = firstMs + i * minuteMs;
    const created = { ...generator.next(publishedMs), Online: i % 20 !== 4 };
    const news: [string, { Id: string; Name: string }][] = [['created', created]];
    if (i % 20 === 9) news.push(['deleted', generator.deleted(created, publishedMs + dayMs)]);
    if (i % 20 === 19) news.push(['modified', generator.modified(created, publishedMs + dayMs)]);
    return news;
  }).flat();
}

beforeAll(async () => {
  const [islands = ''] = blocks(page, 'json');
  writeFileSync(join(dir, 'islands.geojson'), islands);
  await withStore(dir, (store) =>
    Promise.all(
      generatedNews().map(([SubscriptionEvent, value], i) => {
        const about = { ProductId: value.Id, ProductName: value.Name, AckId: `ack-${i}` };
        return store.accept(delivery({ SubscriptionEvent, ...about, value }));
      }),
    ),
  );
  await catchUpIndex({ dataDir: dir });
});
afterAll(() => rmSync(dir, { recursive: true }));

const earshot = (argv: readonly string[]) =>
  runCommand(argv, { env: { EARSHOT_DATA_DIR: dir, ...asOnPages } });

/** Title, number of matches and text of each example. */
const examples = page
  .split(/^### \d+\. /m)
  .slice(1)
  .map((text) => ({
    title: text.split('\n')[0],
    count: Number(/^(\d+) (deleted )?products?$/m.exec(text)?.[1]),
    text,
  }));

/** Lines of arguments; an expression may continue on the next line. */
const linesOf = (text: string) => blocks(text, 'sh').flatMap((block) => block.split(/\n(?=--)/));

async function idsOf(line: readonly string[]): Promise<string[]> {
  // The working folder lacks the file, so its full path is given.
  const flags = line.map((word) => (word.endsWith('.geojson') ? join(dir, word) : word));
  const { code, out, err } = await earshot(['query', 'products', ...flags, '--output', 'ids']);
  expect({ code, err }).toEqual({
    code: 0,
    err: expect.stringMatching(/^$|^warning: An edge spans /),
  });
  return out.trim().split('\n').toSorted();
}

/** Runs the program of an example with the library of this checkout; returns its expression. */
async function builtBy(program: string): Promise<string> {
  const library = new URL('../../src/filter/builder.ts', import.meta.url).href;
  const file = join(dir, 'program.ts');
  writeFileSync(file, program.replace("'earshot'", `'${library}'`));
  const { filter } = await import(/* @vite-ignore */ pathToFileURL(file).href);
  return String(filter);
}

it.each(examples)('finds the same $count products in each way: $title', async ({ text, count }) => {
  const programs = await Promise.all(blocks(text, 'ts').map(builtBy));
  const all = [...linesOf(text).map(words), ...programs.map((filter) => ['--filter', filter])];
  const [first = [], ...others] = await Promise.all(all.map(idsOf));
  expect(count).toBeGreaterThan(0);
  expect(first).toHaveLength(count);
  for (const other of others) expect(other).toEqual(first);
});

it('has at least twenty examples, more than ten of them also with flags', () => {
  expect(examples.length).toBeGreaterThanOrEqual(20);
  const withFlags = examples.filter(({ text }) => linesOf(text).length > 1);
  expect(withFlags.length).toBeGreaterThan(10);
});

it.each(sessionsOf(readPage('subscriptions.md')))(
  'docs/subscriptions.md shows the output of $line',
  async ({ command, line, text }) => {
    const { out, err } = await earshot(command);
    expect(`${line}\n${out}${err}`).toBe(text);
  },
);
