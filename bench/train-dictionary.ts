/** Trains a dictionary for the bodies of the log, and writes it as a data file of the store. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dictionarySamples } from './dictionary-samples.ts';

/** The version that is trained. To make another one, raise it, and add what is written to `body-codec.ts`. */
const version = 1;

/** Measured: with less, packs are larger; with more, loading it takes longer than it saves (decision 28). */
const dictionaryBytes = 16 * 2 ** 10;

const name = `src/store/bodies/dictionary-${version}.json`;
const target = new URL(`../${name}`, import.meta.url);

/** Returns the exit code. A dictionary that is there is never replaced: bodies were compressed with it. */
export function trainDictionary({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'>) {
  const folder = mkdtempSync(join(tmpdir(), 'earshot-dictionary-'));
  try {
    const trained = train(folder);
    if (typeof trained === 'string') {
      stderr.write(`zstd cannot train: ${trained}. Debian has it: apt install zstd\n`);
      return 1;
    }
    const text = fileOf(trained);
    if (!existsSync(target)) writeFileSync(target, text);
    else if (readFileSync(target, 'utf8') !== text) {
      stderr.write(
        `${name} stays as it is: bodies were compressed with it. What was trained now is another one; for it, raise the version in bench/train-dictionary.ts.\n`,
      );
      return 1;
    }
    stdout.write(`${name} holds what was trained: ${trained.length} bytes\n`);
    return 0;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The dictionary, or why there is none. */
function train(folder: string): Buffer | string {
  for (const [index, body] of [...dictionarySamples()].entries()) {
    writeFileSync(join(folder, String(index)), body);
  }
  const output = join(folder, 'dictionary');
  const words = ['-q', '--train', `--maxdict=${dictionaryBytes}`, `--dictID=${version}`];
  const { error, status, stderr } = spawnSync('zstd', [...words, '-r', folder, '-o', output]);
  if (error !== undefined) return error.message;
  return status === 0 ? readFileSync(output) : stderr.toString().trim();
}

function fileOf(dictionary: Buffer): string {
  const about = `Dictionary ${version} for bodies, by npm run train:dictionary. Frozen: it is needed to read what was written.`;
  return `${JSON.stringify({ about, base64: dictionary.toString('base64') }, null, 2)}\n`;
}
