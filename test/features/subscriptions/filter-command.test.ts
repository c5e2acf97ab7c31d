/** `earshot filter`: findings, explanation, and the stored products that a filter matches. */
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { expectEnd, printedJson, runCommand } from '../../helpers/fake-io.ts';
import { writeSubscriptions } from '../../helpers/filled-store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { createProductContext } from '../products/product-samples.ts';

const collection = "Collection/Name eq 'SENTINEL-2'";

/** Creates a folder whose `earshot.config.ts` names these subscriptions. */
function folderWith(subscriptions: object): string {
  const folder = temporaryDirectory();
  writeSubscriptions({ folder }, subscriptions);
  return folder;
}

describe('filter check', () => {
  it.each<[string, RegExp]>([
    ["foo eq 'bar'", /^error: .*foo.*\n {2}foo eq 'bar'\n {2}\^\^\^\n/],
    ['DeletionDate gt 2026-01-01', /DeletedProducts/],
  ])('shows the position in %s, and exits 2', async (filter, message) => {
    const { out, err } = await expectEnd(runCommand(['filter', 'check', filter]), 2);
    expect(out).toMatch(message);
    expect(err).toBe('earshot: The filter has an error.\n');
  });

  it('colours the severity on a terminal, and removes control characters of the filter', async () => {
    const options = { isTTY: true };
    const { out } = await runCommand(['filter', 'check', "foo\u001b[2J eq 'a\u202eb'"], options);
    expect(out).toContain('\u001b[31merror\u001b[39m: ');
    expect(stripVTControlCharacters(out)).not.toMatch(/\p{Cc}(?<!\n)|\u202e/u);
    expect(out).not.toContain('\u001b[2J');
  });

  it('prints every field of each finding with --json', async () => {
    const { code, out } = await runCommand(['filter', 'check', "foo eq 'bar'", '--json']);
    expect(code).toBe(2);
    const shown = JSON.parse(out);
    expect(shown).toMatchObject({ valid: false, entity: 'Products', canonical: null });
    const [finding] = shown.findings;
    expect(Object.keys(finding)).toEqual(
      'severity code message expected hint start end'.split(' '),
    );
    expect(finding).toMatchObject({ severity: 'error', code: 'unknown-field', start: 0, end: 3 });
    const good = await runCommand(['filter', 'check', `(${collection})`, '--json']);
    expect(good).toMatchObject({ code: 0, err: '' });
    const canonical = collection;
    expect(JSON.parse(good.out)).toMatchObject({ valid: true, canonical, findings: [] });
  });

  it.each([
    [collection, 'Products', '', /^The filter is valid for Products\.\n$/],
    ['DeletionDate gt 2026-01-01', 'DeletedProducts', '', /valid for DeletedProducts/],
    ["contains(Name,'_COG')", 'Products', 'warning: ', /valid for Products/],
  ])('accepts %s for %s', async (filter, entity, out, err) => {
    const ended = runCommand(['filter', 'check', filter, '--entity', entity]);
    expect((await expectEnd(ended, 0, err)).out.slice(0, 9)).toBe(out);
  });
});

describe('--subscription', () => {
  const workingDir = () =>
    folderWith({
      good: { filter: collection },
      gone: { events: ['deleted'], filter: 'DeletionDate gt 2026-01-01' },
      wrong: { filter: "foo eq 'bar'" },
      mixed: { events: ['created', 'deleted'], filter: 'DeletionDate gt 2026-01-01' },
    });

  it('checks the filter of earshot.config.ts for the subscribed events', async () => {
    const options = { workingDir: workingDir() };
    const check = (...words: string[]) =>
      runCommand(['filter', 'check', '--subscription', ...words], options);
    expect(await check('good')).toMatchObject({ code: 0 });
    expect((await check('gone')).err).toContain('valid for DeletedProducts');
    expect((await check('wrong')).out).toContain("foo eq 'bar'");
    await expectEnd(check('mixed'), 2, /--entity Products or --entity DeletedProducts/);
    expect(await check('mixed', '--entity', 'DeletedProducts')).toMatchObject({ code: 0 });
    expect(await check('mixed', '--entity', 'Products')).toMatchObject({ code: 2 });
  });

  it.each<[string[], RegExp]>([
    [[], /Give an expression in quotes/],
    [[collection, '--subscription', 'good'], /either an expression or --subscription/],
    [['--subscription', 'god'], /no subscription god\. Did you mean good\?/],
  ])('%j is a usage error', async (words, message) => {
    const { code, out, err } = await runCommand(['filter', 'check', ...words], {
      workingDir: workingDir(),
    });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  });
});

const explained = `${collection} and Attributes/OData.CSC.StringAttribute/any(a:a/Name eq 'timeliness' and a/OData.CSC.StringAttribute/Value eq 'NRT')`;

it('filter explain explains the filter, and needs no data directory', async () => {
  const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot' };
  const { out } = await expectEnd(runCommand(['filter', 'explain', explained], { env }), 0);
  expect(out).toMatch(/SENTINEL-2[\s\S]*timeliness/);
  expect(
    await printedJson(runCommand(['filter', 'explain', explained, '--json'], { env })),
  ).toEqual({
    ...{ entity: 'Products', canonical: expect.stringContaining('timeliness') },
    words: expect.any(Array),
  });
});

it.each([
  ['filter', 'explain'],
  ['query', 'products', '--filter'],
  ['summarize', '--each', '--filter'],
])('a faulty filter is a usage error of %s %s, with the position', async (...words) => {
  const context = await createProductContext();
  const { out, err } = await expectEnd(context.earshot([...words, "foo eq 'bar'"]), 2);
  expect(err).toMatch(/foo eq 'bar'\n *\^\^\^/);
  expect(out).toBe('');
});
