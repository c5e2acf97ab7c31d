import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Entity, FilterTree } from '../../src/domain/filter-tree.ts';
import { checkFilter } from '../../src/filter/check.ts';
import { compileFilter } from '../../src/filter/evaluate.ts';
import { productView } from '../../src/filter/product-view.ts';
import { catchUpIndex } from '../../src/store/products/index-maintenance.ts';
import { openProducts } from '../../src/store/products/products.ts';
import { runCommand } from '../cli/fake-io.ts';
import { delivery, withStore } from '../cli/filled-store.ts';
import { type Example, readExamples, readSessions } from './filter-page.ts';
import { makePageProducts, type PageProducts, type PageRecord } from './page-products.ts';

const examples = readExamples();
const sessions = readSessions();
const executed = new Set<string>();

let dir: string;
let made: PageProducts;
let products: ReturnType<typeof openProducts>;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'earshot-page-'));
  made = makePageProducts();
  await fill(made.news);
  await catchUpIndex({ dataDir: dir });
  products = openProducts(dir);
});

afterAll(async () => {
  await products.close();
  rmSync(dir, { recursive: true });
});

describe('the page on filters', () => {
  it.each(examples)('says what is true: $title', async (example) => {
    const [first = '', ...others] = example.expressions.map((text) => idsInMemory(example, text));
    expect(first.split('\n').filter((id) => id !== '')).toHaveLength(example.count);
    for (const other of others) expect(other).toBe(first);

    for (const text of example.expressions) expect(await idsOfIndex(example, text)).toBe(first);
    if (example.command !== null) expect(await idsOfCommand(example, example.command)).toBe(first);
    if (example.program !== null) {
      expect(await builtBy(example.program)).toBe(example.expressions[0]);
    }
    executed.add(example.title);
  });

  it.each(sessions)('shows what is printed: $command', async ({ command, printed }) => {
    const { out, err } = await earshot(command);
    expect(out + err).toBe(printed);
  });

  it('has at least twenty examples, numbered, and all were executed', () => {
    expect(examples.length).toBeGreaterThanOrEqual(20);
    expect(examples.map(({ title }) => Number.parseInt(title, 10))).toEqual(
      examples.map((_, i) => i + 1),
    );
    expect([...executed]).toEqual(examples.map(({ title }) => title));
    expect(examples.filter(({ command }) => command !== null).length).toBeGreaterThan(10);
    expect(examples.some(({ program }) => program !== null)).toBe(true);
    expect(sessions.length).toBeGreaterThan(0);
  });

  it('counts the products that it speaks of', () => {
    expect(made.alive).toHaveLength(1_900);
    expect(made.tombstones).toHaveLength(100);
  });
});

async function fill(news: PageProducts['news']): Promise<void> {
  await withStore(dir, (store) =>
    Promise.all(
      news.map(({ event, record }, i) =>
        store.accept(
          delivery({
            SubscriptionEvent: event,
            ProductId: record.Id,
            ProductName: record.Name,
            AckId: `ack-${i}`,
            value: record,
          }),
        ),
      ),
    ),
  );
}

function treeOf(entity: Entity, text: string): FilterTree {
  const { tree, findings } = checkFilter(text, entity);
  expect(findings.filter(({ severity }) => severity === 'error')).toEqual([]);
  if (tree === null) throw new Error(`${text} asks for everything.`);
  return tree;
}

function idsInMemory({ entity }: Example, text: string): string {
  const matches = compileFilter(treeOf(entity, text));
  const all = entity === 'Products' ? made.alive : made.tombstones;
  return sorted(all.filter((record: PageRecord) => matches(productView(record))).map(idOf));
}

async function idsOfIndex({ entity }: Example, text: string): Promise<string> {
  const filter = treeOf(entity, text);
  const ids: string[] = [];
  for await (const { row } of products.find({ entity, filter, records: false }))
    ids.push(row.productId);
  expect(await products.count({ entity, filter })).toBe(ids.length);
  return sorted(ids);
}

async function idsOfCommand({ json }: Example, command: readonly string[]): Promise<string> {
  // The file of the example lies in no working folder, so it is named in full.
  const argv = command.map((word) => (word.endsWith('.geojson') ? join(dir, word) : word));
  const file = argv.find((word) => word.endsWith('.geojson'));
  if (file !== undefined) writeFileSync(file, json ?? '');
  const { code, out, err } = await earshot([...argv, '--output', 'ids']);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return sorted(out.split('\n').filter((id) => id !== ''));
}

/** Runs a program of the page; the library it names is the one of this checkout. */
async function builtBy(program: string): Promise<string> {
  const library = new URL('../../src/filter/builder.ts', import.meta.url).href;
  const file = join(dir, 'program.ts');
  writeFileSync(file, program.replace("'earshot'", `'${library}'`));
  const { filter } = await import(/* @vite-ignore */ pathToFileURL(file).href);
  return String(filter);
}

function earshot(argv: readonly string[]) {
  return runCommand(argv, { env: { EARSHOT_DATA_DIR: dir } });
}

function idOf({ Id }: PageRecord): string {
  return Id;
}

function sorted(ids: string[]): string {
  return ids.toSorted().join('\n');
}
