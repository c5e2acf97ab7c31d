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
import { makePageProducts, type PageProducts, type PageRecord } from './page-products.ts';
import { type Example, readExamples, readGeojson, readSessions } from './subscriptions-page.ts';

const examples = readExamples();
const sessions = readSessions();
const executed = new Set<string>();

let dir: string;
let made: PageProducts;
let products: ReturnType<typeof openProducts>;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'earshot-page-'));
  writeFileSync(join(dir, 'islands.geojson'), readGeojson());
  made = makePageProducts();
  await fill(made.news);
  await catchUpIndex({ dataDir: dir });
  products = openProducts(dir);
});

afterAll(async () => {
  await products.close();
  rmSync(dir, { recursive: true });
});

describe('the examples of the page on subscriptions', () => {
  it.each(examples)('find the stated products: $title', async (example) => {
    const texts = await expressionsOf(example);
    const [first = '', ...others] = texts.map((text) => idsInMemory(example, text));
    expect(first.split('\n').filter((id) => id !== '')).toHaveLength(example.count);
    for (const other of others) expect(other).toBe(first);

    for (const text of texts) expect(await idsOfIndex(example, text)).toBe(first);
    for (const line of example.lines) expect(await idsOfCommand(line)).toBe(first);
    executed.add(example.title);
  });

  it('include the filter that the program builds', async () => {
    const program = examples.flatMap((one) => one.program ?? [])[0] ?? '';
    expect(await builtBy(program)).toBe(builtFilter);
  });

  it.each(sessions)('show the output of $command', async ({ command, printed }) => {
    const { out, err } = await earshot(command);
    expect(out + err).toBe(printed);
  });

  it('are numbered, at least twenty, and all executed', () => {
    expect(examples.length).toBeGreaterThanOrEqual(20);
    expect(examples.map(({ title }) => Number.parseInt(title, 10))).toEqual(
      examples.map((_, i) => i + 1),
    );
    expect([...executed]).toEqual(examples.map(({ title }) => title));
    const withFlags = examples.filter(({ lines }) => lines.some((line) => !isExpression(line)));
    expect(withFlags.length).toBeGreaterThan(10);
    expect(examples.filter(({ program }) => program !== null)).toHaveLength(1);
    expect(sessions.length).toBeGreaterThan(0);
  });

  it('run on 1,900 products and 100 deleted ones', () => {
    expect(made.alive).toHaveLength(1_900);
    expect(made.tombstones).toHaveLength(100);
  });
});

/** The text that the program of the page builds. */
const builtFilter = [
  "Collection/Name eq 'SENTINEL-2'",
  "(Attributes/OData.CSC.StringAttribute/any(att:att/Name eq 'productType' and att/OData.CSC.StringAttribute/Value eq 'S2MSI1C')" +
    " or Attributes/OData.CSC.StringAttribute/any(att:att/Name eq 'productType' and att/OData.CSC.StringAttribute/Value eq 'S2MSI2A'))",
  "not (Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and att/OData.CSC.DoubleAttribute/Value ge 50))",
  'ContentDate/Start ge 2026-05-01T00:00:00.000000Z',
  "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((110 -40,155 -40,155 -10,110 -10,110 -40))')",
].join(' and ');

/** True for a line that has a complete `$filter` expression and no other condition. */
function isExpression(line: readonly string[]): boolean {
  return line.filter((word) => word !== '--deleted').length === 2 && line.includes('--filter');
}

/** The expressions of an example; fails without one. */
async function expressionsOf({ lines, program, title }: Example): Promise<string[]> {
  const texts = lines.filter(isExpression).map((line) => line.at(-1) ?? '');
  if (program !== null) texts.push(await builtBy(program));
  if (texts.length === 0) throw new Error(`No expression: ${title}`);
  return texts;
}

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
  if (tree === null) throw new Error(`${text} matches everything.`);
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

async function idsOfCommand(line: readonly string[]): Promise<string> {
  // The working folder lacks the file, so its full path is given.
  const flags = line.map((word) => (word.endsWith('.geojson') ? join(dir, word) : word));
  const argv = ['query', 'products', ...flags, '--output', 'ids'];
  const { code, out, err } = await earshot(argv);
  const warning = isExpression(line) ? expect.stringMatching(/^$|^warning: This edge spans /) : '';
  expect({ code, err }).toEqual({ code: 0, err: warning });
  return sorted(out.split('\n').filter((id) => id !== ''));
}

/** Runs a program of the page with the library of this checkout. */
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
