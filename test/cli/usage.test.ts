/** Words on the command line: what helps, what is refused, and what is said about it. */
import { describe, expect, it } from 'vitest';
import { generatedFiles } from '../../src/cli/generated-files.ts';
import { runCommand, version } from './fake-io.ts';

const commands = [
  ...['demo', 'start', 'query', 'filter', 'index', 'tail', 'quarantine', 'sandbox', 'health'],
  ...['summarize', 'status'],
];

describe('earshot', () => {
  it.each([['--version'], ['-V']])('%s prints the version', async (flag) => {
    expect(await runCommand([flag])).toMatchObject({ code: 0, out: `${version}\n`, err: '' });
  });

  it.each([['--help'], ['-h'], ['help']])('%s names every command on stdout', async (flag) => {
    const { code, out, err } = await runCommand([flag]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    for (const command of commands) expect(out).toMatch(new RegExp(`^ {2}${command}\\b`, 'm'));
    expect(out).toContain('Exit codes: 0 done, 1 failed, 2 wrong usage');
  });

  it.each([
    ...commands.map((command) => [command]),
    ['query', 'drift'],
    ['query', 'products'],
    ['query', 'summaries'],
    ['filter', 'check'],
    ['filter', 'explain'],
    ['filter', 'test'],
    ['index', 'status'],
    ['index', 'rebuild'],
    ['quarantine', 'list'],
    ['quarantine', 'show'],
    ['quarantine', 'retry'],
  ])('%s %s --help has an example', async (...words) => {
    const { code, out, err } = await runCommand([...words.filter(Boolean), '--help']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/Examples?:\n {2}\$ /);
  });

  it.each([
    [
      ['query', '-o', 'table', '-o', 'csv'],
      "'-o, --output <form>' was given twice, with 'table' and 'csv'",
    ],
    [['tail', '-n', '1', '--limit', '2'], "'-n, --limit <rows>' was given twice, with '1' and '2'"],
    [['status', '--data-dir', 'a', '--data-dir', 'b'], "with 'a' and 'b'"],
  ])('refuses %j: an option with two values', async (argv, text) => {
    const { code, out, err } = await runCommand(argv);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(text);
  });

  it('takes an option twice with one value, and one that collects with several', async () => {
    const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot' };
    for (const argv of [
      ['query', '-o', 'csv', '-o', 'csv'],
      ['reconcile', '--subscription', 'a', '--subscription', 'b'],
    ]) {
      expect((await runCommand(argv, { env })).err).toContain('There is no database');
    }
  });

  it.each([
    ['query', 'name', 'productName'],
    ['query', 'recievedAt', 'receivedAt'],
    ['query products', 'cloud', 'cloudCoverPercent'],
  ])('suggests for %s --columns %s the column %s, and lists all', async (words, column, meant) => {
    const { code, err } = await runCommand([...words.split(' '), '--columns', column]);
    expect(code).toBe(2);
    expect(err).toMatch(
      new RegExp(`unknown column "${column}"\\. Did you mean ${meant}\\? Use names from: \\w+, `),
    );
  });

  it('without any words shows its help as an error', async () => {
    const { code, out, err } = await runCommand([]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain('Usage: earshot');
  });

  it('a group without a list shows its help as an error', async () => {
    const { code, out, err } = await runCommand(['filter']);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain('Usage: earshot filter');
  });

  it('help has no line of more than 100 characters', async () => {
    const lines = (await generatedFiles())['docs/cli.md']?.split('\n') ?? [];
    expect(lines.length).toBeGreaterThan(500);
    expect(lines.filter((line) => line.length > 100)).toEqual([]);
  });

  it('help fits a narrow terminal', async () => {
    const all = [['query'], ['query', 'products'], ['filter', 'check'], ['query', 'summaries']];
    for (const words of [...all, ['summarize']]) {
      const { out } = await runCommand([...words, '--help'], { isTTY: true, columns: 80 });
      const options = out.slice(
        0,
        out.search(/\n(Fields of|All flags|Exits 0|Newest first|Without)/),
      );
      expect(Math.max(...options.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    }
  });
});

describe('wrong words', () => {
  it.each([
    ['qurey', /unknown command 'qurey'[\s\S]*Did you mean query\?[\s\S]*earshot --help/],
    ['stauts', /unknown command 'stauts'[\s\S]*Did you mean status\?/],
    ['tial', /Did you mean tail\?/],
    ['query --lmiit 3', /Did you mean --limit\?/],
    [
      'query --columns evnet',
      /unknown column "evnet"\. Did you mean event\? Use names from: position/,
    ],
    ['query products --columns clodu', /unknown column "clodu"\./],
    [
      'query products --columns tiel,foo',
      /unknown columns "tiel", "foo"\. Did you mean tile\? Use/,
    ],
    ['--verbose', /unknown option '--verbose'[\s\S]*earshot --help/],
    ['query --sinse 24h', /unknown option '--sinse'[\s\S]*--since[\s\S]*earshot query --help/],
    ['query --since', /'--since <time>' argument missing/],
    ['query --since yesterday', /90m, 24h, 7d or a date such as/],
    ['query --since 2026-02-30', /90m, 24h, 7d or a date such as/],
    ['query --until 24', /90m, 24h, 7d or a date such as/],
    ...['query', 'tail', 'tail --no-follow', 'query products', 'filter test true'].map(
      (line): [string, RegExp] => [
        `${line} --since 2026-05-01 --until 2026-04-01`,
        /--until \(2026-04-01T00:00:00\.000Z\) is not after --since \(2026-05-01T00:00:00\.000Z\): nothing could match\. Exchange them/,
      ],
    ),
    [
      "filter check Collection/Name eq 'SENTINEL-2'",
      /takes 1, not 'eq'\. A text with blanks stands in quotes: "Collection\/Name eq 'SENTINEL-2'"/,
    ],
    ['query --limit ten', /'ten' is invalid[\s\S]*whole number from 1/],
    ['query --limit 0', /whole number from 1/],
    ['query --limit=-1', /whole number from 1/],
    ['query --limit 1.5', /whole number from 1/],
    ['query --limit 1e3', /whole number from 1/],
    ['query --json --output csv', /cannot be used with/],
    ['query --body --json', /cannot be used with/],
    ['query --event ,', /one name, or several/],
    ['sandbox --fault lost=0.5=9', /Use name=rate/],
    ['query --after 99999999999999999999', /whole number from 0/],
    ['query --before x', /whole number from 0/],
    ['query --output xml', /Allowed choices are table, json, ndjson, csv/],
    ['query --order up', /Allowed choices are newest, oldest/],
    ['query --source fax', /Allowed choices are push, reconcile/],
    ['query --time sensing', /Allowed choices are received, notification/],
    ['query surplus', /unknown command|too many arguments/],
    [
      'query drift --output csv',
      /Allowed choices are table, json\.[\s\S]*earshot query drift --help/,
    ],
    ['query product', /unknown command 'product'[\s\S]*Did you mean products\?[\s\S]*query --help/],
    ['query products --cloud 20', /unknown option '--cloud'[\s\S]*Did you mean --cloud-below\?/],
    ['query products --cloud=20', /unknown option '--cloud=20'[\s\S]*Did you mean --cloud-below\?/],
    ['query --product x', /unknown option '--product'[\s\S]*Did you mean --product-id\?/],
    ['query --sinse=24h', /Did you mean --since\?/],
    ['cert', /unknown command 'cert'[\s\S]*Did you mean certificate\?/],
    ['backup lst', /unknown command 'lst'[\s\S]*Did you mean list\?/],
    ['sinks ded', /unknown command 'ded'[\s\S]*Did you mean dead\?[\s\S]*earshot sinks --help/],
    ['sinks list bus', /too many arguments/],
    ['query -o json --json', /cannot be used with/],
    ['query products --explain -o csv', /--explain prints table or json/],
    ['certificate show --pem -o json', /cannot be used with/],
    ['query --data-dir', /'--data-dir <folder>' argument missing/],
    ['query --data-dir=', /Use the path of a folder/],
    ['reconcile --from yesterday', /90m, 24h, 7d or a date such as/],
    ['tail --from yesterday', /'yesterday' is invalid[\s\S]*Use start, now, or a position/],
    ['tail --reader Downloads', /small letters, digits/],
    ['tail --reader ../x', /small letters, digits/],
    ['tail --output table', /Allowed choices are lines, json, ndjson/],
    ['quarantine lst', /unknown command 'lst'[\s\S]*list/],
    ['quarantine show', /missing required argument 'id'/],
    ['quarantine show first', /whole number from 1/],
    ['quarantine show 0', /whole number from 1/],
    ['quarantine list --limit x', /whole number from 1/],
    ['demo --products 0', /whole number from 1/],
    ['demo --seed x', /whole number from 0/],
    ['start now', /too many arguments/],
  ])('earshot %s exits 2 and says what would be right', async (line, message) => {
    const { code, out, err } = await runCommand(line.split(' '));
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  });
});

describe('--data-dir', () => {
  it.each([
    ['--data-dir /nonexistent/named query'],
    ['query --data-dir /nonexistent/named'],
    ['query --data-dir=/nonexistent/named products'],
    ['query products --data-dir /nonexistent/named'],
    ['sinks --data-dir /nonexistent/named'],
    ['--data-dir /nonexistent/other sinks list --data-dir /nonexistent/named'],
  ])('counts more than the variable: earshot %s', async (line) => {
    const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot' };
    const { err } = await runCommand(line.split(' '), { env });
    expect(err).toContain('There is no database in /nonexistent/named.');
  });
});

it('--data-dir that is a file is called one', async () => {
  const file = import.meta.filename;
  const { code, err } = await runCommand(['query', '--data-dir', file]);
  expect(code).toBe(2);
  expect(err).toContain(
    `earshot: ${file} is a file, not a data directory. Name the folder that holds earshot.db, with --data-dir or EARSHOT_DATA_DIR.\n`,
  );
});

describe('a group without a command', () => {
  it.each([['sinks'], ['quarantine'], ['index']])('prints its list: %s', async (group) => {
    const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot' };
    const { err } = await runCommand([group, '--json'], { env });
    expect(err).toMatch(/There is no (database|product index)/);
  });

  it.each([['subscriptions'], ['certificate']])('reads its settings: %s', async (group) => {
    const { err } = await runCommand([group, '--json'], { env: { EARSHOT_TLS: 'maybe' } });
    expect(err).toMatch(/in the configuration|EARSHOT_/);
    expect(err).not.toContain('Usage:');
  });
});

describe('wrong settings', () => {
  it('are all told, one a line, and exit 2', async () => {
    const env = { EARSHOT_LISTEN: 'x', EARSHOT_TLS: 'maybe', EARSHOT_LOGLEVEL: 'debug' };
    const { code, out, err } = await runCommand(['start'], { env });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/^earshot: \d problems in the configuration\./);
    expect(err).toContain('\n  - EARSHOT_LISTEN: must be host:port');
    expect(err).toContain('Did you mean EARSHOT_LOG_LEVEL?');
  });

  it('of other commands do not keep query from looking', async () => {
    const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot', EARSHOT_TLS: 'maybe' };
    const { err } = await runCommand(['query'], { env });
    expect(err).toContain('There is no database in /nonexistent/earshot.');
  });

  it.each([
    ['query'],
    ['query --body'],
    ['query drift'],
    ['query products'],
    ['query products --count'],
    ['tail --no-follow'],
    ['quarantine list'],
    ['quarantine show 1'],
  ])('that name no data directory: earshot %s exits 2 and says what to set', async (line) => {
    const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot' };
    const { code, out, err } = await runCommand(line.split(' '), { env });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/There is no database in .*EARSHOT_DATA_DIR/);
  });
});
