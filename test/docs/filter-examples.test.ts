/**
 * Runs the examples of filters in docs/reference/filter-examples.md and the console sessions of
 * docs/subscriptions.md. To update the page of examples:
 * `npx vitest run test/docs/filter-examples.test.ts --update`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { catchUpIndex } from '../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../src/features/products/index-file/products.ts';
import { checkFilter } from '../../src/filter/check.ts';
import { compileFilter } from '../../src/filter/evaluate.ts';
import type { Entity, FilterTree } from '../../src/filter/filter-tree.ts';
import { productView } from '../../src/filter/product-view.ts';
import { runCommand } from '../helpers/fake-io.ts';
import { delivery, withStore } from '../helpers/filled-store.ts';
import { asOnPages, readPage, sessionsOf, words } from './console-sessions.ts';
import { chapters, type Example, islands } from './filter-examples.ts';
import { makePageProducts, type PageProducts, type PageRecord } from './page-products.ts';

const examples = Object.values(chapters).flat();
const sessions = sessionsOf(readPage('subscriptions.md'));
/** Number of matches of each executed example. */
const counts = new Map<Example, number>();

let dir: string;
let made: PageProducts;
let products: ReturnType<typeof openProducts>;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'earshot-page-'));
  writeFileSync(join(dir, 'islands.geojson'), islands);
  made = makePageProducts();
  await fill(made.news);
  await catchUpIndex({ dataDir: dir });
  products = openProducts(dir);
});

afterAll(async () => {
  await products.close();
  rmSync(dir, { recursive: true });
});

describe('the examples of filters', () => {
  it.each(examples)('find the same products with flags and expression: $title', async (example) => {
    const { lines = [], entity = 'Products' } = example;
    const texts = await expressionsOf(example);
    const [first = '', ...others] = texts.map((text) => idsInMemory(entity, text));
    for (const other of others) expect(other).toBe(first);

    for (const text of texts) expect(await idsOfIndex(entity, text)).toBe(first);
    for (const line of lines) expect(await idsOfCommand(words(line))).toBe(first);
    counts.set(example, first.split('\n').filter((id) => id !== '').length);
  });

  it('include the filter that the program builds', async () => {
    const [program = '', ...others] = examples.flatMap((one) => one.program ?? []);
    expect(others).toEqual([]);
    expect(await builtBy(program)).toBe(builtFilter);
  });

  it('are at least twenty, all find something, and more than ten also have flags', () => {
    expect(examples.length).toBeGreaterThanOrEqual(20);
    expect(examples.filter((example) => !counts.get(example))).toEqual([]);
    const withFlags = examples.filter(({ lines = [] }) =>
      lines.some((line) => !isExpression(words(line))),
    );
    expect(withFlags.length).toBeGreaterThan(10);
  });

  it('run on 1,900 products and 100 deleted ones', () => {
    expect(made.alive).toHaveLength(1_900);
    expect(made.tombstones).toHaveLength(100);
  });

  it('stand in docs/reference/filter-examples.md with the number of matches', async () => {
    const sections = Object.entries(chapters).map(
      ([title, chapter]) => `## ${title}\n\n${chapter.map(section).join('\n')}`,
    );
    const page = `${pageHead}\n${sections.join('\n')}`;
    await expect(page).toMatchFileSnapshot('../../docs/reference/filter-examples.md');
  });
});

describe('docs/subscriptions.md', () => {
  it.each(sessions)('shows the output of $line', async ({ command, line, text }) => {
    const { out, err } = await earshot(command);
    expect(`${line}\n${out}${err}`).toBe(text);
  });

  it('has console sessions', () => {
    expect(sessions).not.toEqual([]);
  });
});

const pageHead = `# Examples of filters

Every line of an example selects the same products: first with flags of \`./earshot query products\`, if flags
are sufficient, then with a complete \`$filter\` expression. Put one line after the command:

\`\`\`sh
./earshot query products --collection S2 --cloud-below 20
\`\`\`

\`./earshot register\` has the same flags, except \`--sensed\`, \`--published\` and \`--deleted\`. The number
of matches refers to 2,000 generated products, of which 100 are deleted; a test counts them. The syntax
is explained in [Subscriptions and filters](../subscriptions.md#filters).

<!-- Written by test/docs/filter-examples.test.ts. -->
`;

/** The section of an example: title, number of matches and lines. */
function section(example: Example): string {
  const { title, entity, lines = [], program } = example;
  const count = counts.get(example) ?? 0;
  const kind = entity === 'DeletedProducts' ? 'deleted product' : 'product';
  const usesFile = lines.some((line) => line.includes('islands.geojson'));
  return `### ${examples.indexOf(example) + 1}. ${title}

${count} ${kind}${count === 1 ? '' : 's'}
${usesFile ? `\nContent of \`islands.geojson\`:\n\n${fenced('json', islands)}` : ''}
${program === undefined ? fenced('sh', lines.join('\n')) : fenced('ts', program)}`;
}

function fenced(language: string, text: string): string {
  return `\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\n`;
}

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
async function expressionsOf({ lines = [], program, title }: Example): Promise<string[]> {
  const texts = lines
    .map(words)
    .filter(isExpression)
    .map((line) => line.at(-1) ?? '');
  if (program !== undefined) texts.push(await builtBy(program));
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

function idsInMemory(entity: Entity, text: string): string {
  const matches = compileFilter(treeOf(entity, text));
  const all = entity === 'Products' ? made.alive : made.tombstones;
  return sorted(all.filter((record: PageRecord) => matches(productView(record))).map(idOf));
}

async function idsOfIndex(entity: Entity, text: string): Promise<string> {
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
  return runCommand(argv, { env: { EARSHOT_DATA_DIR: dir, ...asOnPages } });
}

function idOf({ Id }: PageRecord): string {
  return Id;
}

function sorted(ids: string[]): string {
  return ids.toSorted().join('\n');
}
