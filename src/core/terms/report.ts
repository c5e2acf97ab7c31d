/**
 * A report: what the terminal and the page show of a thing, described once. `printReport` (cli) and `renderReport`
 * (console) render it. Texts name commands and variables in backquotes.
 */
import type { painter } from '../cli/output.ts';
import type { Html } from '../page/markup.ts';
import type { Evaluation, Level } from './evaluation.ts';

/** A value as data: the renderers format it. A number is a count; null means none, or not known. */
export type Value =
  | string
  | number
  | null
  | { timeUs: number }
  | { spanUs: number }
  | { bytes: number }
  | { code: string }
  | { level: Level; text?: string }
  | { text: string; href: string };

export interface ReportColumn {
  title: string;
  isNumber?: boolean;
  /** Takes the remaining width: a reason. */
  grows?: boolean;
  /** The name of a product: whole where it fits, and the last thing to go. */
  isName?: boolean;
  /** Never shortened: a command. */
  isWhole?: boolean;
  /** Left out where there is no width, the highest first. */
  drop?: number;
}

export interface Column<Row> extends ReportColumn {
  value: (row: Row) => Value;
}

/** A command that is useful now, and its purpose. */
export type Command = readonly [purpose: string, command: string];

export type Block =
  | { kind: 'text'; text: string; level?: Level }
  /** Why a list is empty, and what to do. */
  | { kind: 'empty'; text: string; next: string | null }
  /** Each with its name: those with a problem and their evidence, or on one screen `all` of them without it. */
  | { kind: 'evaluations'; rows: readonly (readonly [name: string, Evaluation])[]; all: boolean }
  /** Values that are null are left out. */
  | { kind: 'facts'; rows: readonly (readonly [name: string, Value])[] }
  | {
      kind: 'table';
      caption: string;
      columns: readonly ReportColumn[];
      rows: readonly (readonly Value[])[];
    }
  | { kind: 'commands'; rows: readonly Command[] }
  /** A picture of a feature: lines for the terminal, and panels of their own on the page. */
  | {
      kind: 'drawn';
      lines: (paint: ReturnType<typeof painter>) => readonly string[];
      panels: () => Html;
    }
  | {
      kind: 'section';
      title: string;
      id?: string;
      evaluation: Evaluation | null;
      blocks: readonly Block[];
    };

export interface Report {
  title: string;
  blocks: readonly Block[];
}

export function text(content: string, level?: Level): Block {
  return { kind: 'text', text: content, ...(level !== undefined && { level }) };
}

export const empty = (reason: string, next: string | null = null): Block => ({
  kind: 'empty',
  text: reason,
  next,
});

export function facts(...rows: readonly (readonly [name: string, Value])[]): Block {
  return { kind: 'facts', rows };
}

export function commands(...rows: readonly (Command | false)[]): Block {
  return { kind: 'commands', rows: rows.filter((row) => row !== false) };
}

export function table<Row>(
  caption: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): Block {
  return {
    ...{ kind: 'table', caption },
    columns: columns.map(({ value: _, ...column }) => column),
    rows: rows.map((row) => columns.map(({ value }) => value(row))),
  };
}

/** Lists evaluations with a problem, or all of them. */
export function evaluations(
  rows: readonly (readonly [name: string, Evaluation])[],
  { all = false } = {},
): Block {
  return { kind: 'evaluations', rows, all };
}

export const time = (timeUs: number | null | undefined): Value =>
  timeUs == null ? null : { timeUs };

export const span = (spanUs: number | null): Value => (spanUs === null ? null : { spanUs });

export const size = (bytes: number | null): Value => (bytes === null ? null : { bytes });

export const code = (content: string | null): Value =>
  content === null ? null : { code: content };

export const link = (content: string, href: string): Value => ({ text: content, href });

/** Shows only the level; terminal and page colour it. */
export const levelOf = ({ level }: Pick<Evaluation, 'level'>): Value => ({ level });
