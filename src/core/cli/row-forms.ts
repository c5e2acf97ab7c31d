/** Writes rows as table, JSON, NDJSON, CSV, GeoJSON, GeoParquet, ids, or lines of another format. */
import { stringify } from 'csv-stringify/sync';
import { checkFilter } from '../../filter/check.ts';
import type { Entity, FilterTree } from '../../filter/filter-tree.ts';
import { type FilterFinding, showFinding } from '../../filter/finding.ts';
import type { StoreReader } from '../../store/store.ts';
import { AppError } from '../terms/app-error.ts';
import { csvOptions } from '../terms/json-rows.ts';
import { counted, likelyNames, printable } from '../terms/text.ts';
import type { Io, Output } from './io.ts';
import { painter, writeForeign, writeJson } from './output.ts';
import { printTable } from './print-report.ts';

export const outputForms = ['table', 'json', 'ndjson', 'csv'] as const;
export type OutputForm = (typeof outputForms)[number];

/** Output of one kind of rows, by format. */
export interface RowForms<Row> {
  table: (rows: AsyncIterable<Row>) => Promise<unknown>;
  /** The element of JSON and NDJSON. */
  json: (row: Row) => unknown;
  /** The columns of CSV. */
  fields: readonly string[];
  /** Values of CSV and of a table with chosen columns, by the name of their field. */
  values: (row: Row) => Readonly<Record<string, unknown>>;
  /** A GeoJSON feature. */
  feature?: (row: Row) => unknown;
  /** Lines of other formats, by name. */
  lines?: Readonly<Record<string, (row: Row) => string>>;
  /** Writes a GeoParquet file. */
  file?: (rows: AsyncIterable<Row>) => Promise<void>;
}

export interface WrittenRows<Row> {
  count: number;
  last: Row | undefined;
}

/** Rows after which `onRows` is called. */
const notedRows = 10_000;

/**
 * Writes rows as a stream. `columns` replaces the default columns of table, CSV and GeoParquet. `onRows` is called from
 * time to time with the number of rows.
 */
export async function writeRows<Row>(
  output: Output,
  form: string,
  rows: AsyncIterable<Row>,
  forms: RowForms<Row>,
  {
    columns,
    onRows = () => {},
  }: { columns?: readonly string[] | undefined; onRows?: (count: number) => void } = {},
): Promise<WrittenRows<Row>> {
  const written: WrittenRows<Row> = { count: 0, last: undefined };
  const noted = async function* () {
    for await (const row of rows) {
      written.count += 1;
      written.last = row;
      yield row;
      if (written.count % notedRows === 0) onRows(written.count);
    }
  };
  if (form === 'geoparquet') await forms.file?.(noted());
  else if (form !== 'table') await writeElements(output, form, noted(), forms, columns);
  else if (columns === undefined) await forms.table(noted());
  else {
    const value = (field: string) => (row: Row) => String(forms.values(row)[field] ?? '-');
    const chosen = columns.map((title) => ({ title, value: value(title), isWhole: true }));
    await printTable(output, chosen, noted());
  }
  return written;
}

async function writeElements<Row>(
  output: Output,
  form: string,
  rows: AsyncIterable<Row>,
  forms: RowForms<Row>,
  fields = forms.fields,
): Promise<void> {
  if (form === 'json') return void (await writeJson(output, rows, { element: forms.json }));
  if (form === 'geojson') {
    const collection = { begin: '{"type":"FeatureCollection","features":', end: '}' };
    return void (await writeJson(output, rows, { ...collection, element: forms.feature }));
  }
  const lineOf = (row: Row): string => {
    if (form === 'ndjson') return `${JSON.stringify(forms.json(row))}\n`;
    const line = forms.lines?.[form];
    if (line !== undefined) return `${line(row)}\n`;
    const values = forms.values(row);
    return stringify([fields.map((field) => values[field])], csvOptions);
  };
  // Many lines at a time: each write to a file costs as much as a line.
  let lines = form === 'csv' ? `${fields.join(',')}\n` : '';
  let writtenAtMs = performance.now();
  const write = async () => {
    const text = lines;
    lines = '';
    await writeForeign(output, text);
    writtenAtMs = performance.now();
  };
  try {
    for await (const row of rows) {
      lines += lineOf(row);
      const isDue = output.isTTY || performance.now() > writtenAtMs + waitMaxMs;
      if (isDue || lines.length >= writtenCharactersMin) await write();
    }
  } finally {
    // Rows before an error, too.
    if (lines !== '') await write();
  }
}

const writtenCharactersMin = 65_536;
/** Rows that are rare are written at once. */
const waitMaxMs = 100;

/** Parses `--columns a,b,c`. Throws `usage` for a format without columns and for unknown names. */
export function readColumns(
  text: string | undefined,
  form: string,
  valid: readonly string[],
): string[] | undefined {
  if (text === undefined) return undefined;
  if (form !== 'table' && form !== 'csv' && form !== 'geoparquet') {
    throw new AppError('usage', `--columns does not work with ${form} output.`, {
      advice: 'Use --output csv, or omit --columns.',
    });
  }
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !valid.includes(name));
  if (unknown !== undefined) throw unknownName('column', unknown, valid);
  return [...new Set(names)];
}

/** Prints the flag for the next page if this page is full. */
export function reportNextPage(
  { stderr }: Pick<Io, 'stderr'>,
  { count, limit }: { count: number; limit: number | undefined },
  flag: string,
): void {
  if (count !== limit) return;
  stderr.write(`${counted(count, 'row')}. Next page: ${flag}\n`);
}

/** Parses a filter to a tree; null for a blank one, which matches everything. Throws `usage`; warns on stderr. */
export function readFilter(
  text: string,
  entity: Entity,
  io: Pick<Io, 'stderr' | 'env'>,
): FilterTree | null {
  const { tree, findings, errors } = checkFilter(text, entity);
  if (errors.length > 0) {
    const details = errors.map((finding) => showFinding(text, finding));
    throw new AppError('usage', `The filter is not valid for ${entity}.`, { details });
  }
  // Such a filter is slow at the catalogue, but not in the product index.
  const shown = findings.filter(({ code }) => code !== 'name-without-collection');
  for (const finding of shown) io.stderr.write(findingText(text, finding, io, io.stderr));
  return tree;
}

/** Formats a finding as several lines, the first word in colour if the output supports it. */
export function findingText(
  text: string,
  finding: FilterFinding,
  io: Pick<Io, 'env'>,
  output: Output,
): string {
  const { severity } = finding;
  const label = painter(io, output)(severity === 'error' ? 'red' : 'yellow', severity);
  return `${label}${showFinding(text, finding).slice(severity.length)}\n`;
}

/** Returns a `usage` error that names the nearest known names, or all. */
export function unknownName(what: string, name: string, known: Iterable<string>): AppError {
  const all = [...new Set(known)].toSorted();
  const near = likelyNames(name, all);
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`;
  const list = all.length === 0 ? 'None is known yet.' : `Known: ${all.join(', ')}.`;
  return new AppError('usage', `There is no ${what} ${printable(name)}.${hint}`, { advice: list });
}

type Names = {
  administration: Pick<StoreReader['administration'], 'registrations' | 'deliveryMarks'>;
  completeness: Pick<StoreReader['completeness'], 'definitions'>;
};

/** Returns the names of subscriptions that were ever registered, or received notifications. */
async function subscriptionNamesIn({ administration, completeness }: Names) {
  const [registrations, marks, definitions] = await Promise.all([
    administration.registrations(),
    administration.deliveryMarks(),
    completeness.definitions(),
  ]);
  const names = [
    ...registrations.map(({ name }) => name),
    ...[...marks, ...definitions].map(({ subscription }) => subscription),
  ];
  return [...new Set(names)].filter((name) => name !== null);
}

/** Rejects with `usage` for a name that is no subscription of the store, and has no rows either. */
export async function requireSubscription(
  name: string | undefined,
  store: Names,
  rows: AsyncIterable<unknown> | Iterable<unknown>,
): Promise<void> {
  if (name === undefined) return;
  const known = await subscriptionNamesIn(store);
  if (known.includes(name)) return;
  for await (const _ of rows) return;
  throw unknownName('subscription', name, known);
}

/** A finding about a filter that earshot evaluates. */
export interface PlacedFinding {
  /** Path in the file, such as `sinks.archive.filter`. */
  where: string;
  filter: string;
  finding: FilterFinding;
}

export function filterFindings(places: readonly [where: string, filter: string][]) {
  return places.flatMap(([where, filter]): PlacedFinding[] =>
    checkFilter(filter, 'Products')
      // Slow only at the catalogue.
      .findings.filter(({ code }) => code !== 'name-without-collection')
      .map((finding) => ({ where, filter, finding })),
  );
}

/** Returns the errors, one line each. */
export function filterErrors(findings: readonly PlacedFinding[]): string[] {
  return findings
    .filter(({ finding }) => finding.severity === 'error')
    .map(({ where, filter, finding }) => `${where}: ${showFinding(filter, finding)}`);
}
