/** Reads the environment with the table of variables, and collects all problems before reporting them. */

import type { z } from 'zod';
import { AppError, withAdvice } from '../terms/app-error.ts';
import { nearestName, orList } from '../terms/text.ts';

/** A variable. The schema parses its text; `default` is a text too. */
export interface Variable {
  schema: z.ZodType;
  default?: string;
  /** May also be set as `<name>_FILE`, the path of a file that contains the value. */
  secret?: true;
  /** A path that decides what earshot trusts or runs: no other user may change it. */
  isTrusted?: true;
  /** Description for `docs/reference/configuration.md`, in one to three sentences. */
  description: string;
  /** Example of a value. */
  example: string;
}

export type Variables = Readonly<Record<`EARSHOT_${string}`, Variable>>;

/** Declares variables. */
export const defineVariables = <const Table extends Variables>(table: Table): Table => table;

/** Value of a variable; undefined when it is not set and has no default. */
export type Value<Row extends Variable> =
  | z.output<Row['schema']>
  | (Row extends { default: string } ? never : undefined);

/** Environment variables, and access to the files of `…_FILE` variables. */
export interface Environment {
  /** Variables and sections of the features. */
  settings: Settings;
  env: Readonly<Record<string, string | undefined>>;
  readFile: (path: string) => string;
}

export interface ConfigProblem {
  /** Null when no variable causes it. */
  variable: string | null;
  /** A line for the user, never with the value of a secret. */
  message: string;
  /** Next step, if the message does not state it. */
  advice?: string | undefined;
}

/** Functions with which a section of the configuration is read. */
export interface Reader<Table extends Variables> {
  /** Returns the value of a variable; an empty text counts as unset. After a problem: its default, or undefined. */
  value<Name extends keyof Table & string>(
    name: Name,
  ): Table[Name] extends Variable ? Value<Table[Name]> : never;
  /** Returns true when one of them has a reported problem, so that its consequences are not reported again. */
  failed(...names: (keyof Table & string)[]): boolean;
  report(variable: (keyof Table & string) | null, message: string, advice?: string): void;
  /** Ends a section that has problems and therefore no value. */
  stop(): never;
  readFile: Environment['readFile'];
}

/** Reads a section from variables, and checks that they are consistent. */
export type Section<Result = unknown> = (reader: Reader<never>) => Result;

export type Sections = Readonly<Record<string, Section>>;

/** Values of sections. */
export type Loaded<From extends Sections> = {
  readonly [Name in keyof From]: ReturnType<From[Name]>;
};

/** Declares sections that read these variables. */
export const defineSections = <
  Table extends Variables,
  From extends Readonly<Record<string, (reader: Reader<Table>) => unknown>>,
>(
  _: Table,
  sections: From,
): { readonly [Name in keyof From]: Section<ReturnType<From[Name]>> } =>
  sections as unknown as { readonly [Name in keyof From]: Section<ReturnType<From[Name]>> };

/** Uses of several sections: of the data directory, and of the receiver. */
export type SettingsGroup = 'data' | 'start';

/** Variables and sections of a feature. */
export interface SettingsSlot {
  variables: Variables;
  sections: Sections;
  /** Keys of `earshot.config.ts`. */
  fileKeys?: Readonly<Record<string, z.ZodType>>;
  /** Keys of each subscription in `earshot.config.ts`. */
  subscriptionKeys?: Readonly<Record<string, z.ZodType>>;
  groups?: Readonly<Partial<Record<SettingsGroup, readonly string[]>>>;
}

/** Variables and sections of the program. */
export interface Settings extends Required<SettingsSlot> {
  groups: Readonly<Record<SettingsGroup, readonly string[]>>;
}

/** Joins the settings of features, in their order. */
export function joinSettings(slots: readonly SettingsSlot[]): Settings {
  const group = (name: SettingsGroup) => slots.flatMap(({ groups }) => groups?.[name] ?? []);
  return {
    variables: Object.assign({}, ...slots.map(({ variables }) => variables)),
    sections: Object.assign({}, ...slots.map(({ sections }) => sections)),
    fileKeys: Object.assign({}, ...slots.map(({ fileKeys }) => fileKeys)),
    subscriptionKeys: Object.assign({}, ...slots.map((one) => one.subscriptionKeys)),
    groups: { data: group('data'), start: group('start') },
  };
}

/** Settings of no feature. */
export const noSettings = joinSettings([]);

/** Reads all valid sections, and lists all problems. */
export function checkSections(
  environment: Environment,
  names: readonly string[],
): { config: Readonly<Record<string, unknown>>; problems: ConfigProblem[] } {
  const { variables, sections } = environment.settings;
  const all = unknownNames(environment);
  const readings = new Map<string, Reading>();
  const config: Record<string, unknown> = {};
  for (const section of new Set(names)) {
    const read = sections[section];
    if (read === undefined) throw new Error(`There is no section ${section}.`);
    const problems: ConfigProblem[] = [];
    const reading = (name: string) => {
      const row = variables[name as keyof Variables];
      if (row === undefined) throw new Error(`There is no variable ${name}.`);
      const found = readings.get(name) ?? readVariable(name, row, environment);
      readings.set(name, found);
      if (found.problem !== null) problems.push({ variable: name, ...found.problem });
      return found;
    };
    const reader: Reader<never> = {
      // Each value was parsed by the schema that defines its type.
      value: (name) => reading(name).value as never,
      failed: (...names) => names.filter((name) => reading(name).problem !== null).length > 0,
      report: (variable, message, advice) => void problems.push({ variable, message, advice }),
      stop: () => {
        throw stopped;
      },
      readFile: environment.readFile,
    };
    try {
      const value = read(reader);
      if (problems.length === 0) config[section] = value;
    } catch (error) {
      if (error !== stopped) throw error;
    }
    all.push(...problems);
  }
  return { config, problems: distinct(all) };
}

const stopped = Symbol('a section has problems');

/** Removes duplicates: two sections may report the same problem. */
function distinct(problems: readonly ConfigProblem[]): ConfigProblem[] {
  return [...new Map(problems.map((problem) => [problem.message, problem])).values()];
}

/** Throws one `configuration` error that lists all problems; returns without one. */
export function refuseProblems(problems: readonly ConfigProblem[]): void {
  if (problems.length === 0) return;
  const count = problems.length === 1 ? 'One problem' : `${problems.length} problems`;
  throw new AppError(
    'configuration',
    `${count} in the configuration. All variables: docs/reference/configuration.md.`,
    { details: problems.map(problemLine), facts: { problems } },
  );
}

/** Formats a problem as a line for the user. */
export function problemLine({ message, advice }: ConfigProblem): string {
  return withAdvice(message, advice);
}

/** Returns the problems of a `configuration` error, or its message when it lists none. */
export function problemsOf({
  facts,
  details,
  message,
  advice,
}: AppError): readonly ConfigProblem[] {
  if (facts.problems !== undefined) return facts.problems as readonly ConfigProblem[];
  if (details.length === 0) return [{ variable: null, message, advice }];
  return details.map((line) => ({ variable: null, message: line }));
}

interface Reading {
  value: unknown;
  problem: Omit<ConfigProblem, 'variable'> | null;
}

function readVariable(name: string, row: Variable, environment: Environment): Reading {
  const fallback = row.default === undefined ? undefined : row.schema.parse(row.default);
  const { text, problem } = textOf(name, row, environment);
  if (text === undefined) return { value: fallback, problem };
  const parsed = row.schema.safeParse(text);
  if (parsed.success) return { value: parsed.data, problem: null };
  return { value: fallback, problem: describe(name, parsed.error.issues, row) };
}

function textOf(
  name: string,
  { secret }: Variable,
  { env, readFile }: Environment,
): { text?: string | undefined; problem: Reading['problem'] } {
  const text = env[name] || undefined;
  const file = secret === true ? env[`${name}_FILE`] : undefined;
  if (!file) return { text, problem: null };
  if (text !== undefined)
    return {
      problem: {
        message: `${name} and ${name}_FILE are both set.`,
        advice: 'Remove one of the two variables.',
      },
    };
  try {
    const content = readFile(file).replace(/\r?\n$/, '');
    if (content !== '') return { text: content, problem: null };
    return { problem: { message: `The file of ${name}_FILE is empty.` } };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    // Omits the path: a user may have set the secret itself as the path.
    return { problem: { message: `The file of ${name}_FILE cannot be read (${code}).` } };
  }
}

function describe(name: string, issues: readonly z.core.$ZodIssue[], { example }: Variable) {
  const messages = issues.map((issue) =>
    issue.code === 'invalid_value' ? `must be ${orList(issue.values.map(String))}` : issue.message,
  );
  const text = `${name}: ${messages.join('; ')}.`;
  return { message: text, advice: / such as /.test(text) ? undefined : `Example: ${example}` };
}

/** Returns a problem for each unknown EARSHOT_ variable, with the one that is probably meant. */
function unknownNames({ env, settings }: Environment): ConfigProblem[] {
  const known = Object.entries(settings.variables).flatMap(([name, { secret }]) =>
    secret === true ? [name, `${name}_FILE`] : [name],
  );
  const unknown = Object.keys(env).filter(
    (one) => one.startsWith('EARSHOT_') && !known.includes(one),
  );
  return unknown.map((variable) => {
    const nearest = nearestName(variable, known);
    const advice = nearest === null ? 'Remove it.' : `Did you mean ${nearest}?`;
    return { variable, message: `${variable} is not a known variable.`, advice };
  });
}
