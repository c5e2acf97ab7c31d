/** Arguments on the command line: help, refusals, and their messages. */
import type { Command, Option } from 'commander';
import { describe, expect, it } from 'vitest';
import { idleIo, meaningOf } from '../../../scripts/generated-files.ts';
import { createProgram, fullName, withChildren } from '../../../src/core/cli/run.ts';
import { expectEnd, expectRefusal, printed, runCommand, version } from '../../helpers/fake-io.ts';

describe('earshot', () => {
  it('-V prints the version', async () => {
    expect(await runCommand('-V')).toMatchObject({ code: 0, out: `${version}\n`, err: '' });
  });

  it.each([['--help'], ['help']])(
    '%s names every command on stdout, on one screen',
    async (flag) => {
      const out = await printed(runCommand([flag]));
      for (const one of program.commands)
        expect(out).toMatch(new RegExp(`^ {2}[a-z].* ${one.name()}\\b`, 'm'));
      expect(out).toContain('Exit codes: 0 done, 1 failed, 2 wrong usage');
      const lines = out.trimEnd().split('\n');
      expect(lines.length).toBeLessThanOrEqual(24);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    },
  );

  it('without arguments shows its help as an error', async () => {
    await expectRefusal(runCommand([]), 'Usage: earshot');
  });
});

it.each([
  ['qurey', /unknown command 'qurey'[\s\S]*Did you mean query\?[\s\S]*earshot --help/],
  ['stauts', /unknown command 'stauts'[\s\S]*Did you mean status\?/],
  ['query --lmiit 3', /Did you mean --limit\?/],
  ['query --columns evnet', /There is no column evnet\. Did you mean event\? Known: ackId/],
  ['query products --columns cloud', /column cloud\. Did you mean cloudCoverPercent\? Known:/],
  ['query products --columns tiel,foo', /column tiel\. Did you mean tile\? Known:/],
  ['query --sinse 24h', /unknown option '--sinse'[\s\S]*--since[\s\S]*earshot query --help/],
  ['query --since', /'--since <time>' argument missing/],
  ['query --since yesterday', /90m, 24h, 7d or a date such as/],
  ...['query', 'tail', 'tail --no-follow', 'query products'].map((line): [string, RegExp] => [
    `${line} --since 2026-05-01 --until 2026-04-01`,
    /--until \(2026-04-01T00:00:00\.000Z\) is not after --since \(2026-05-01T00:00:00\.000Z\)\. Swap the two times, or omit one/,
  ]),
  ['query --limit ten', /'ten' is invalid[\s\S]*whole number, 1 or more/],
  ['query --json --output csv', /cannot be used with/],
  ['query --event ,', /one or more events, comma-separated/],
  ['sandbox --fault lost=0.5=9', /Use name=rate/],
  ['query --after 99999999999999999999', /whole number, 0 or more/],
  ['query --output xml', /Allowed choices are table, json, ndjson, csv/],
  ['query --source fax', /Allowed choices are push, pull, reconcile/],
  [
    'query drift --output csv',
    /Allowed choices are table, json\.[\s\S]*earshot query drift --help/,
  ],
  ['query --product x', /unknown option '--product'[\s\S]*Did you mean --product-id\?/],
  ['admin confg', /unknown command 'confg'[\s\S]*Did you mean config\?/],
  ['sinks ded', /too many arguments for 'list'[\s\S]*sinks list --help/],
  ['query --data-dir', /'--data-dir <folder>' argument missing/],
  ['query --data-dir=', /Use the path of a folder/],
  ['tail --from yesterday', /'yesterday' is invalid[\s\S]*Use "start", "now" or a position/],
  ['tail --reader Downloads', /lower-case letters, digits/],
  ['tail --output table', /Allowed choices are lines, json, ndjson/],
  ['admin health --yes', /unknown option '--yes'/],
  ['quarantine show', /missing required argument 'id'/],
  ['quarantine show first', /whole number, 1 or more/],
  ['demo --products 0', /whole number, 1 or more/],
  ['start now', /too many arguments/],
])('usage errors earshot %s exits 2 with a correction', async (line, message) => {
  await expectRefusal(runCommand(line.split(' ')), message);
});

it.each([
  ['--data-dir /nonexistent/named query'],
  ['query --data-dir=/nonexistent/named products'],
  ['--data-dir /nonexistent/other sinks list --data-dir /nonexistent/named'],
])('--data-dir takes precedence over the variable: earshot %s', async (line) => {
  const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot' };
  const { err } = await runCommand(line.split(' '), { env });
  expect(err).toContain('There is no database in /nonexistent/named.');
});

it('reports a path that is a file', async () => {
  const file = import.meta.filename;
  const { err } = await expectEnd(runCommand(['query', '--data-dir', file]), 2);
  expect(err).toContain(
    `earshot: ${file} is a file, not a data directory. Set --data-dir or EARSHOT_DATA_DIR to the folder that contains earshot.db.\n`,
  );
});

it('faulty settings of other commands do not stop query, which says what to set', async () => {
  const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot', EARSHOT_TLS: 'maybe' };
  const text = /There is no database in \/nonexistent\/earshot.*EARSHOT_DATA_DIR/;
  await expectRefusal(runCommand('query', { env }), text);
});

// Rules for every command of the tree: the same flag has the same names and the same meaning.
const program = await createProgram(idleIo, '');
const tree = withChildren(program).slice(1);
const options = tree.flatMap((command) =>
  command.options.map((option) => ({ name: fullName(command), command, option })),
);
const withFlag = (long: string) => options.filter(({ option }) => option.long === long);
const optionOf = (command: Command, long: string): Option | undefined =>
  command.options.find((option) => option.long === long);

it('--json is the short form of -o, --output json in every command', () => {
  const wrong = withFlag('--json').filter(({ command, option }) => {
    const output = optionOf(command, '--output');
    const forms = output?.argChoices ?? [];
    const isJson = /\b(?:nd)?json\b/i.test(option.description);
    return output?.short !== '-o' || !forms.some((form) => /^(?:nd)?json$/.test(form)) || !isJson;
  });
  expect(wrong.map(({ name }) => name)).toEqual([]);
  expect(withFlag('--json').length).toBeGreaterThan(25);
});

it('a time range uses only --since and --until', () => {
  const times = options.filter(({ option }) => /<time>/.test(option.flags));
  const named = times.map(({ name, option }) => `${name} ${option.long}`);
  expect(named.filter((one) => !/ --(since|until)$/.test(one))).toEqual([]);
  const since = new Set(withFlag('--since').map(({ name }) => name));
  const until = new Set(withFlag('--until').map(({ name }) => name));
  expect([...since].toSorted()).toEqual([...until].toSorted());
  expect(since.size).toBeGreaterThan(7);
});

it('every command has --data-dir, except those that read no data directory', () => {
  const without = tree.filter((command) => optionOf(command, '--data-dir') === undefined);
  expect(without.map(fullName)).toEqual([
    ...['earshot demo', 'earshot sandbox', 'earshot filter check'],
  ]);
});

it('every command that does something has examples in its help', () => {
  const wrong = tree.filter((command) => {
    const parts: string[] = [];
    command.configureOutput({ writeOut: (text) => void parts.push(text) }).outputHelp();
    const [, examples = ''] = parts.join('').split('Examples:\n');
    return !/^ {2}\$ (?:.* )?earshot /.test(examples);
  });
  expect(wrong.map(fullName)).toEqual([]);
});

it('a flag has one meaning, in every command that has it', () => {
  const meanings = new Map<string, Set<string>>();
  for (const { option } of options) {
    const known = meanings.get(option.name()) ?? new Set();
    meanings.set(option.name(), known.add(meaningOf(option)));
  }
  const ambiguous = [...meanings].filter(([, texts]) => texts.size > 1);
  expect(ambiguous.map(([name, texts]) => [name, ...texts])).toEqual([]);
});
