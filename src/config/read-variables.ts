/** Reads the environment against the table; finds all problems before it reports any. */
import type { z } from 'zod';
import { AppError } from '../domain/app-error.ts';
import { editDistance } from '../domain/edit-distance.ts';
import { type Values, type Variable, type VariableKey, variables } from './variables.ts';

/** Where values come from: the environment, and the files that `…_FILE` variables name. */
export interface Environment {
  env: Readonly<Record<string, string | undefined>>;
  readFile: (path: string) => string;
}

/** Values and problems gathered so far, for checks across variables. */
export interface Gathered<Key extends VariableKey> {
  values: Values<Key>;
  problems: string[];
}

/**
 * Reads the named variables. An empty value counts as unset. Names beginning with EARSHOT_ that
 * nobody knows are a problem, with the nearest known name. Problems never hold a secret's value.
 */
export function readVariables<Key extends VariableKey>(
  environment: Environment,
  keys: readonly Key[],
): Gathered<Key> {
  const problems = unknownNames(environment.env);
  const values: Record<string, unknown> = {};
  for (const key of keys) {
    const row: Variable = variables[key];
    const text = textOf(row, environment, problems) ?? row.default;
    if (text === undefined) continue;
    const parsed = row.schema.safeParse(text);
    if (parsed.success) values[key] = parsed.data;
    else problems.push(`${row.name}: ${describe(parsed.error.issues, row)}`);
  }
  // Each value was read by the schema that its type is inferred from.
  return { values: values as Values<Key>, problems };
}

/** Throws one error that lists every problem; returns when there is none. */
export function refuseProblems(problems: readonly string[]): void {
  if (problems.length === 0) return;
  const count = problems.length === 1 ? 'One problem' : `${problems.length} problems`;
  throw new AppError(
    'configuration',
    `${count} in the configuration. All variables: docs/configuration.md.`,
    { details: problems },
  );
}

function textOf(row: Variable, { env, readFile }: Environment, problems: string[]) {
  const direct = env[row.name] || undefined;
  const file = row.secret === true ? env[`${row.name}_FILE`] || undefined : undefined;
  if (file === undefined) return direct;
  if (direct !== undefined) {
    problems.push(`${row.name} and ${row.name}_FILE are both set. Keep one of them.`);
    return undefined;
  }
  try {
    const text = readFile(file).replace(/\r?\n$/, '');
    if (text === '') problems.push(`The file that ${row.name}_FILE names is empty.`);
    return text || undefined;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    // Without the name: somebody may have put the secret itself there.
    problems.push(`The file that ${row.name}_FILE names cannot be read (${code}).`);
    return undefined;
  }
}

function describe(issues: readonly z.core.$ZodIssue[], row: Variable) {
  const messages = issues.map((issue) =>
    issue.code === 'invalid_value' ? `must be ${orList(issue.values.map(String))}` : issue.message,
  );
  return `${messages.join('; ')}. Example: ${row.example}`;
}

/** `on or off`; `a, b or c`. */
function orList(words: readonly string[]): string {
  return [words.slice(0, -1).join(', '), ...words.slice(-1)].filter(Boolean).join(' or ');
}

function unknownNames(env: Environment['env']): string[] {
  const known = Object.values<Variable>(variables).flatMap(({ name, secret }) =>
    secret === true ? [name, `${name}_FILE`] : [name],
  );
  return Object.keys(env)
    .filter((name) => name.startsWith('EARSHOT_') && !known.includes(name))
    .map((name) => {
      const [nearest = ''] = known.toSorted(
        (a, b) => editDistance(name, a) - editDistance(name, b),
      );
      const own = name.slice('EARSHOT_'.length);
      const advice =
        editDistance(name, nearest) <= own.length / 2 ? `Did you mean ${nearest}?` : 'Take it out.';
      return `${name} is not a variable of earshot. ${advice}`;
    });
}
