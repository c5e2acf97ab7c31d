/** `earshot admin completion`: the scripts, run by real shells. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bareEnvironment } from '../../helpers/bare-environment.ts';
import { printed, runCommand } from '../../helpers/fake-io.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const isInstalled = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status === 0;

async function scriptOf(shell: string): Promise<string> {
  const out = await printed(runCommand(['admin', 'completion', shell]));
  const file = join(temporaryDirectory(), shell);
  writeFileSync(file, out);
  return file;
}

/** The script calls the program by its name. */
const program = join(import.meta.dirname, '../../../earshot');

function run(shell: string, argv: readonly string[], cwd?: string): string {
  const folder = temporaryDirectory();
  symlinkSync(program, join(folder, 'earshot'));
  const PATH = `${folder}:${process.env.PATH}`;
  const env = bareEnvironment({ HOME: folder, TERM: 'dumb', PATH });
  const { status, stdout, stderr } = spawnSync(shell, argv, { encoding: 'utf8', env, cwd });
  expect({ shell, status, stderr }).toEqual({ shell, status: 0, stderr: '' });
  return stdout;
}

it('prints the script of $SHELL; without $SHELL it names the shells and an example', async () => {
  const own = await runCommand('admin completion', { env: { SHELL: '/usr/bin/fish' } });
  expect(own).toEqual(await runCommand('admin completion fish'));
  for (const env of [{}, { SHELL: '/bin/dash' }]) {
    const { code, out, err } = await runCommand('admin completion', { env });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/bash, zsh or fish\. .*`earshot admin completion bash`/);
  }
});

/** Typed words, completions that the shell offers for the last one, and words it does not offer. */
const cases: readonly [string[], string[], string[]][] = [
  [['earshot', 'qua'], ['quarantine'], ['query']],
  [['earshot', 'query', ''], ['products', 'summaries', 'drift'], ['list']],
  [['earshot', 'query', '--s'], ['--since', '--source', '--subscription'], ['--sensed']],
  [['earshot', 'query', 'products', '--cl'], ['--cloud-below'], ['--ack-id']],
  [['earshot', 'query', '--event', 'query', 'dr'], ['drift'], ['query']],
  [['earshot', '--data-dir', 'query', 'sta'], ['status', 'start'], ['drift']],
  [['earshot', 'admin', 'completion', ''], ['bash', 'zsh', 'fish'], ['query']],
];

describe('the completion of bash', () => {
  it.each(cases)('%j offers %j', async (words, offered, other) => {
    const file = await scriptOf('bash');
    const script = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
      spec=$(complete -p earshot); [[ $spec == *"-F _earshot earshot" ]] || exit 3
      _earshot earshot "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"
      printf '%s\\n' "\${COMPREPLY[@]}"`;
    const found = run('bash', ['-c', script, 'bash', file, ...words]).split('\n');
    expect(found).toEqual(expect.arrayContaining(offered));
    expect(found.filter((one) => other.includes(one))).toEqual([]);
  });

  it('offers files for a flag that takes a file', async () => {
    const file = await scriptOf('bash');
    const folder = temporaryDirectory();
    mkdirSync(join(folder, 'area of mine'));
    const script = `source "$1"; COMP_WORDS=(earshot query products --area ar); COMP_CWORD=4
      _earshot; printf '%s\\n' "\${COMPREPLY[@]}"`;
    expect(run('bash', ['-c', script, 'bash', file], folder)).toBe('area of mine\n');
  });
});

describe.skipIf(!isInstalled('fish'))('the completion of fish (needs fish)', () => {
  it.each(cases)('%j offers %j', async (words, offered, other) => {
    const file = await scriptOf('fish');
    const script = 'source $argv[1]; complete -C "$argv[2]"';
    const lines = run('fish', ['--no-config', '-c', script, file, words.join(' ')]).split('\n');
    const found = lines.map((line) => line.split('\t')[0]);
    expect(found).toEqual(expect.arrayContaining(offered));
    expect(found.filter((one) => other.includes(one ?? ''))).toEqual([]);
  });
});

describe.skipIf(!isInstalled('zsh'))('the completion of zsh (needs zsh)', () => {
  it.each(cases)('%j offers %j', async (words, offered, other) => {
    const file = await scriptOf('zsh');
    // compadd needs the line editor; print the candidates instead.
    const script = `compdef() { [[ $* == '_earshot earshot' ]] || exit 3 }; source "$1"; shift
      _describe() { for one in "\${(@P)2}"; do print -r -- $one; done }
      _files() { print -r -- FILES }
      words=("$@"); CURRENT=$#; _earshot`;
    const lines = run('zsh', ['-f', '-c', script, 'zsh', file, ...words]).split('\n');
    const begun = words.at(-1) ?? '';
    const found = lines.map((line) => line.split(':')[0]).filter((one) => one?.startsWith(begun));
    expect(found).toEqual(expect.arrayContaining(offered));
    expect(found.filter((one) => other.includes(one ?? ''))).toEqual([]);
  });
});
