/** Rules that hold for every command of the tree: the same flag has the same names and means the same. */
import type { Command, Option } from 'commander';
import { expect, it } from 'vitest';
import { idleIo } from '../../src/cli/generated-files.ts';
import { createProgram, fullName, withChildren } from '../../src/cli/program.ts';

const program = await createProgram(idleIo, '');
const commands = withChildren(program).slice(1);
const options = commands.flatMap((command) =>
  command.options.map((option) => ({ name: fullName(command), command, option })),
);
const withFlag = (long: string) => options.filter(({ option }) => option.long === long);
const optionOf = (command: Command, long: string): Option | undefined =>
  command.options.find((option) => option.long === long);

it('--json is the short form of -o, --output json wherever it is taken', () => {
  const wrong = withFlag('--json').filter(({ command, option }) => {
    const output = optionOf(command, '--output');
    const forms = output?.argChoices ?? [];
    const isJson = /\b(?:nd)?json\b/i.test(option.description);
    return output?.short !== '-o' || !forms.some((form) => /^(?:nd)?json$/.test(form)) || !isJson;
  });
  expect(wrong.map(({ name }) => name)).toEqual([]);
  expect(withFlag('--json').length).toBeGreaterThan(25);
});

it.each([
  ['--output', '-o'],
  ['--limit', '-n'],
  ['--follow', '-f'],
])('%s has the short form %s wherever it is taken', (long, short) => {
  const wrong = withFlag(long).filter(({ option }) => option.short !== short);
  expect(wrong.map(({ name }) => name)).toEqual([]);
});

it('a short form means one option everywhere', () => {
  const meanings = new Map<string, Set<string | undefined>>();
  for (const { option } of options) {
    if (option.short === undefined) continue;
    meanings.set(option.short, (meanings.get(option.short) ?? new Set()).add(option.long));
  }
  expect([...meanings].filter(([, names]) => names.size > 1)).toEqual([]);
});

it('a span of time has no other names than --since and --until', () => {
  const visible = options.filter(({ option }) => !option.hidden);
  const times = visible.filter(({ option }) => /<time>/.test(option.flags));
  const named = times.map(({ name, option }) => `${name} ${option.long}`);
  // How long a simulated past lasts, and how late a product may be: lengths, not ends of a span.
  const lengths = ['earshot sandbox --late-max', 'earshot sandbox --past'];
  expect(named.filter((one) => !/ --(since|until)$/.test(one)).toSorted()).toEqual(lengths);
  const since = new Set(withFlag('--since').map(({ name }) => name));
  const until = new Set(withFlag('--until').map(({ name }) => name));
  expect([...since].toSorted()).toEqual([...until].toSorted());
  expect([...since].toSorted()).toEqual([
    ...['earshot coverage', 'earshot filter test', 'earshot query', 'earshot query products'],
    ...['earshot query summaries', 'earshot reconcile', 'earshot replay', 'earshot summarize'],
    'earshot tail',
  ]);
});

it('every command takes --data-dir, but for those that read no data directory', () => {
  const without = commands.filter((command) => optionOf(command, '--data-dir') === undefined);
  expect(without.map(fullName)).toEqual([
    ...['earshot demo', 'earshot filter check', 'earshot completion', 'earshot sandbox'],
  ]);
});

it('every command that does something has an example in its help', () => {
  const wrong = commands.filter((command) => {
    const parts: string[] = [];
    command.configureOutput({ writeOut: (text) => void parts.push(text) }).outputHelp();
    return !/Examples?:\n {2}\$ (?:.* )?earshot /.test(parts.join(''));
  });
  expect(wrong.map(fullName)).toEqual([]);
});

it('a flag that several commands take has one description', () => {
  for (const long of ['--output', '--yes', '--data-dir']) {
    const shown = withFlag(long)
      // The questions of `setup` are no confirmations: its --yes takes the answers that are known.
      .filter(({ name, option }) => !option.hidden && name !== 'earshot setup')
      .map(({ option }) => option.description.replace(/ \(default: \w+\)$/, ''));
    expect([long, new Set(shown).size]).toEqual([long, 1]);
  }
});
