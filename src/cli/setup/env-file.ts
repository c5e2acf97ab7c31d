/** Settings as the text of `.env`, as lines on a screen, and as environment. */
import { parseEnv } from 'node:util';
import { variableRows } from '../../config/variables.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Io } from '../io.ts';

export type Settings = Readonly<Record<string, string>>;

/** Replaces a secret on a screen. */
const mask = '********';

/**
 * Merges settings into the text of `.env` (null without a file), and removes the `dropped` names. Comments, unchanged
 * settings and other names keep their lines. Throws `usage` for a value that `.env` cannot represent.
 */
export function mergeEnvFile(
  before: string | null,
  settings: Settings,
  { header, dropped = [] }: { header: string; dropped?: readonly string[] },
): string {
  const present = parseEnv(before ?? '');
  const changed = Object.entries(settings).filter(([name, value]) => present[name] !== value);
  const removed = new Set([...dropped, ...changed.map(([name]) => name)]);
  const kept = (before ?? `# ${header}\n`)
    .split(/(?<=\n)/)
    .filter((line) => !removed.has(nameIn(line)));
  const last = kept.at(-1);
  if (last !== undefined && !last.endsWith('\n')) kept.push('\n');
  const text = [...kept, ...changed.map(([name, value]) => `${name}=${quoted(name, value)}\n`)];
  return verified(text.join(''), settings, dropped);
}

/** Returns the io with these settings in place of all EARSHOT variables. */
export function ioWith<Part extends Pick<Io, 'env'>>(io: Part, settings: Settings): Part {
  const others = Object.entries(io.env).filter(([name]) => !name.startsWith('EARSHOT_'));
  return { ...io, env: { ...Object.fromEntries(others), ...settings } };
}

/** Returns `NAME=value` lines for a screen, with secrets masked. */
export function shownSettings(settings: Settings): string[] {
  return Object.entries(settings).map(([name, value]) =>
    secretNames.has(name) ? `${name}=${mask}` : `${name}=${quoted(name, value)}`,
  );
}

const secretNames: ReadonlySet<string> = new Set(
  variableRows.flatMap(([name, { secret }]) => (secret ? [name] : [])),
);

function nameIn(line: string): string {
  return /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=/.exec(line)?.[1] ?? '';
}

/** Quotes a value in forms that shell, systemd, Docker and Node read alike. */
function quoted(name: string, value: string): string {
  if (/^[\w@%+=:,./-]+$/.test(value)) return value;
  if (!/['\n\r]/.test(value)) return `'${value}'`;
  if (!/["\\$`\n\r]/.test(value)) return `"${value}"`;
  throw new AppError('usage', `The value of ${name} has characters that .env cannot represent.`, {
    advice: `Write the value to a separate file, and set ${name}_FILE to the path of the file.`,
  });
}

/** Parses the text again: multi-line values, and names in an unexpected form, cannot be replaced. */
function verified(text: string, settings: Settings, dropped: readonly string[]): string {
  const read = parseEnv(text);
  const wrong = [
    ...Object.keys(settings).filter((name) => read[name] !== settings[name]),
    ...dropped.filter((name) => name in read),
  ];
  if (wrong.length === 0) return text;
  throw new AppError(
    'conflict',
    `The lines of ${wrong.join(', ')} in the existing .env cannot be changed automatically.`,
    { advice: 'Edit the file, or move it.' },
  );
}
