/** Settings as the text of `.env`, as lines on a screen, and as environment. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import type { Io } from '../../core/cli/io.ts';
import { writeOwnerOnly } from '../../core/host/files.ts';
import { AppError } from '../../core/terms/app-error.ts';

export type Settings = Readonly<Record<string, string>>;

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
  const changed = Object.entries(settings).filter(
    ([name, value]) => (present[name] ?? '') !== value,
  );
  const removed = new Set([...dropped, ...changed.map(([name]) => name)]);
  const kept = (before ?? `# ${header}\n`)
    .replace(/(?<=.)$/, '\n')
    .split(/(?<=\n)/)
    .filter((line) => !removed.has(/^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=/.exec(line)?.[1] ?? ''));
  const text = [...kept, ...changed.map(([name, value]) => `${name}=${quoted(name, value)}\n`)];
  return verified(text.join(''), settings, dropped);
}

/** Settings to write to a folder's `.env`. */
export interface EnvChange {
  folder: string;
  settings: Settings;
  /** Names that are removed from an existing file. */
  dropped: readonly string[];
}

const header = 'Written by `earshot setup`. All variables: docs/reference/configuration.md.';

/** Returns the present text of the file, null without a file, and the text with the settings. */
export function envTexts(io: Pick<Io, 'readFile'>, change: EnvChange) {
  const path = join(change.folder, '.env');
  const before = existsSync(path) ? io.readFile(path) : null;
  const { settings, dropped } = change;
  return { path, before, text: mergeEnvFile(before, settings, { header, dropped }) };
}

/** Writes the settings; returns what was done. Throws `conflict` for an existing file that may not be changed. */
export async function writeEnvFile(
  io: Pick<Io, 'readFile'>,
  change: EnvChange,
  mayChange: boolean,
): Promise<string> {
  const { path, before, text } = envTexts(io, change);
  if (before === text) return `unchanged: ${path}`;
  if (before !== null && !mayChange) {
    throw new AppError('conflict', `${path} exists and would be changed. Nothing was done.`, {
      advice: 'Add --force to change it. Lines of other variables stay unchanged.',
    });
  }
  await writeOwnerOnly(path, text);
  return `written: ${path}`;
}

/** Returns the io with these settings in place of all EARSHOT variables. */
export function ioWith<Part extends Pick<Io, 'env'>>(io: Part, settings: Settings): Part {
  const others = Object.entries(io.env).filter(([name]) => !name.startsWith('EARSHOT_'));
  return { ...io, env: { ...Object.fromEntries(others), ...settings } };
}

/** Returns `NAME=value` lines for a screen, with secrets masked. */
export function shownSettings(settings: Settings, io: Pick<Io, 'settings'>): string[] {
  const isSecret = (name: string) =>
    io.settings.variables[name as keyof typeof io.settings.variables]?.secret === true;
  const set = Object.entries(settings).filter(([, value]) => value !== '');
  return set.map(([name, value]) =>
    isSecret(name) ? `${name}=********` : `${name}=${quoted(name, value)}`,
  );
}

/** Quotes a value in forms that shell, systemd, Docker and Node read alike. */
function quoted(name: string, value: string): string {
  if (/^[\w@%+=:,./-]*$/.test(value)) return value;
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
    ...Object.keys(settings).filter((name) => (read[name] ?? '') !== settings[name]),
    ...dropped.filter((name) => name in read),
  ];
  if (wrong.length === 0) return text;
  throw new AppError(
    'conflict',
    `The lines of ${wrong.join(', ')} in the existing .env cannot be changed automatically.`,
    { advice: 'Edit the file, or move it.' },
  );
}
