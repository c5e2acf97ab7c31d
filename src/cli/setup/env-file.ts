/** Settings as the text of a file `.env`, on a screen, and in place of the environment. */
import { parseEnv } from 'node:util';
import { variableRows } from '../../config/variables.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Io } from '../io.ts';

export type Settings = Readonly<Record<string, string>>;

/** What stands for a secret on a screen. */
const mask = '********';

/**
 * The earlier text (null without a file) with the settings; `dropped` names are removed. Lines that say the same
 * already, comments and other names stay as they are. Throws `usage` for a value that no `.env` can hold.
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

/** The same io with these settings in place of all others of earshot. */
export function ioWith<Part extends Pick<Io, 'env'>>(io: Part, settings: Settings): Part {
  const others = Object.entries(io.env).filter(([name]) => !name.startsWith('EARSHOT_'));
  return { ...io, env: { ...Object.fromEntries(others), ...settings } };
}

/** `NAME=value` lines for a screen, secrets masked. */
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

/** Shell, systemd and Docker read these forms as Node does. */
function quoted(name: string, value: string): string {
  if (/^[\w@%+=:,./-]+$/.test(value)) return value;
  if (!/['\n\r]/.test(value)) return `'${value}'`;
  if (!/["\\$`\n\r]/.test(value)) return `"${value}"`;
  throw new AppError('usage', `The value of ${name} has characters that no .env file can hold.`, {
    advice: `Write it to a file of its own, and name that in ${name}_FILE.`,
  });
}

/** A value of several lines, or a name in a form that is not expected, would make a file that says something else. */
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
    { advice: 'Edit that file, or move it away.' },
  );
}
