/** `earshot.config.ts`: contents, refusals, and reloading of a changed file. */
import { readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { noSettings } from '../../../src/core/config/load.ts';
import {
  readConfigState,
  subscriptionsFileName,
} from '../../../src/core/config/subscriptions-file.ts';
import { runCommand } from '../../helpers/fake-io.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { exporting, loadFolder, loadText, refusalAt, writeConfig } from './load-file.ts';

const load = async (folder: string) => (await loadFolder(folder)).subscriptions;
const loadSubscriptions = async (text: string) => (await loadText(text)).subscriptions;
const write = writeConfig;

const bare = { type: 'push', events: ['created'], filter: '', status: 'running' };

describe('earshot.config.ts', () => {
  it('gives its subscriptions by name, with defaults, and events in the order of the specification', async () => {
    const subscriptions = {
      zebra: {},
      alps: { events: ['deleted', 'created', 'deleted', 'modified'], status: 'paused' },
      '0': { events: ['modified', 'created'] },
      ['a'.repeat(63)]: { status: 'running' },
    };
    expect(await loadSubscriptions(exporting({ subscriptions }))).toEqual([
      { ...bare, name: '0', events: ['created', 'modified'] },
      { ...bare, name: 'a'.repeat(63) },
      { ...bare, name: 'alps', events: ['created', 'modified', 'deleted'], status: 'paused' },
      { ...bare, name: 'zebra' },
    ]);
  });

  it('keeps each filter byte by byte', async () => {
    const filter =
      "  contains(Name,'Ka\u0308rnten\u00a0€ ''x''')\r\n\tand\u0000 1 eq 1 \ud83d\ude00 ";
    const loaded = await loadSubscriptions(exporting({ subscriptions: { a: { filter } } }));
    expect(loaded).toEqual([{ ...bare, name: 'a', filter }]);
  });

  it('works as docs/subscriptions.md shows it, in a folder without packages', async () => {
    const project = join(import.meta.dirname, '../../..');
    const page = readFileSync(join(project, 'docs/subscriptions.md'), 'utf8');
    const example = /```ts\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    expect(example).toMatch(/import \{.*defineConfig.*\} from 'earshot'/);
    expect(await loadSubscriptions(example)).toMatchObject([
      {
        name: 'alps-s2',
        events: ['created', 'modified'],
        filter: expect.stringMatching(/^Collection\/Name eq 'SENTINEL-2' and .*6 45/),
      },
      { name: 'deletions', events: ['deleted'] },
      { name: 'later', status: 'paused' },
    ]);
  });

  it.each([
    'const alps: object = {};',
    // In JavaScript, the call is a comparison.
    'const made = (one) => one; const alps = made<Date> ({});',
  ])('may contain types: %s', async (line) => {
    const text = `${line}\nexport default { subscriptions: { alps } };`;
    expect(await loadSubscriptions(text)).toEqual([{ ...bare, name: 'alps' }]);
  });

  it('is empty when there is no such file', async () => {
    const folder = temporaryDirectory();
    expect(await load(folder)).toBeNull();
    expect(await load(join(folder, 'not', 'there'))).toBeNull();
  });
});

describe('a filter in code', () => {
  const areaOf = (...corners: number[][]) =>
    JSON.stringify({ type: 'Polygon', coordinates: [corners] });

  it('becomes the text that the catalogue reads, with the area of a file', async () => {
    const folder = temporaryDirectory();
    writeFileSync(join(folder, 'area.geojson'), areaOf([4, 50], [5, 50], [5, 51], [4, 50]));
    write(
      folder,
      `import { and, cloudCover, collection, defineConfig, geojsonFile, intersects } from 'earshot';
       const area = geojsonFile(new URL('./area.geojson', import.meta.url));
       export default defineConfig({
         subscriptions: {
           a: { filter: and(collection('SENTINEL-2'), cloudCover.lt(20), intersects(area)) },
           b: { filter: collection('SENTINEL-1') },
         },
       });\n`,
    );
    const loaded = await load(folder);
    const [a, b] = Array.isArray(loaded) ? loaded : [];
    expect(b).toEqual({ ...bare, name: 'b', filter: "Collection/Name eq 'SENTINEL-1'" });
    expect(a?.filter).toMatch(
      /^Collection\/Name eq 'SENTINEL-2' and Attributes.*cloudCover.* lt 20\) and OData\.CSC\.Intersects\(area=geography'SRID=4326;POLYGON ?\(\(4 50, ?5 50, ?5 51, ?4 50\)\)'\)$/,
    );
  });

  it.each<[string, string, RegExp]>([
    [
      'a missing file',
      'gone.geojson',
      /gone\.geojson cannot be read as GeoJSON: there is no such file/,
    ],
    ['an open ring', 'open.geojson', /The catalogue would refuse this geometry/],
  ])('with %s is refused with the reason', async (_title, file, reason) => {
    const folder = temporaryDirectory();
    writeFileSync(join(folder, 'open.geojson'), areaOf([4, 50], [5, 50], [5, 51], [4, 51]));
    write(
      folder,
      `import { geojsonFile, intersects } from 'earshot';
       const area = geojsonFile(new URL('./${file}', import.meta.url));
       export default { subscriptions: { a: { filter: intersects(area) } } };\n`,
    );
    expect(await load(folder)).toMatchObject({
      code: 'configuration',
      message: expect.stringMatching(reason),
    });
  });
});

describe('a file with faults', () => {
  const form = 'the default export: not valid. Write: export default defineConfig…';
  const nameRule = 'use lower-case letters, digits and dashes; at most 63 characters';
  const faulty = (a: unknown) => exporting({ subscriptions: { a } });
  it.each<[text: string, ...problems: string[]]>([
    ['export const subscriptions = {};', form],
    ['export default () => ({ subscriptions: {} });', form],
    [exporting({}), 'subscriptions: …'],
    [exporting({ subscriptions: [] }), 'subscriptions: missing…'],
    [
      exporting({ subscriptions: { a: { filtr: '' } }, limits: {} }),
      'subscriptions.a: unknown field "filtr"',
      'the default export: unknown field "limits"',
    ],
    [faulty({ events: ['created', 'Deleted'] }), 'subscriptions.a.events.1: Invalid option…'],
    [
      faulty({ events: 'created' }),
      "subscriptions.a.events: must be a list, such as ['created', 'deleted']",
    ],
    [faulty({ events: [] }), 'subscriptions.a.events: add an event…'],
    [faulty({ filter: ['x'] }), 'subscriptions.a.filter: must be a string…'],
    [faulty({ status: 'cancelled' }), 'subscriptions.a.status: Invalid option…'],
    [
      exporting({ subscriptions: { a: { status: 'on', filter: 1 }, b: {}, B: {}, c: null } }),
      'subscriptions.a.filter: …',
      'subscriptions.a.status: …',
      `subscriptions.B: ${nameRule}`,
      'subscriptions.c: must be an object, such as { filter: …',
    ],
  ])('(%s) is refused with place and reason', async (text, ...problems) => {
    const { subscriptions, path } = await loadText(text);
    expect(subscriptions).toEqual(refusalAt(path, '', problems));
  });

  it('stops a command before its first request, with exit code 2', async () => {
    const workingDir = temporaryDirectory();
    write(workingDir, exporting({ subscriptions: { Alps: {} } }));
    const ended = await runCommand(['register', '--yes'], { workingDir });
    expect(ended).toMatchObject({ code: 2, out: '' });
    expect(ended.err).toMatch(/is invalid\.\n {2}- subscriptions\.Alps: use lower-case letters/);
  });
});

describe('a file that cannot be loaded', () => {
  const good = exporting({ subscriptions: {} });
  it.each<[string, string, RegExp]>([
    ['has a syntax error', 'export default {\n  subscriptions: {\n    a: {\n};\n', /line 4: ./],
    [
      'calls a value that is not a function',
      'export default {\n  a: nothing,\n};\n',
      /line 2: nothing is not defined/,
    ],
    ['needs more than the removal of its types', `enum A { B }\n${good}`, /enum is not supported/],
    [
      'throws',
      `throw new Error('no filter today.');\n${good}`,
      /: no filter today\. Fix or remove/,
    ],
    ['imports a missing file', `import './gone.ts';\n${good}`, /Cannot find module .*gone\.ts/],
  ])('because it %s is refused with the reason and advice', async (_title, text, reason) => {
    const folder = temporaryDirectory();
    const path = write(folder, text);
    const loaded = await load(folder);
    expect(loaded).toEqual({
      name: 'AppError',
      code: 'configuration',
      message: expect.stringMatching(reason),
      details: [],
    });
    expect(loaded).toMatchObject({
      message: expect.stringMatching(/ cannot be loaded: .*\. Fix or remove the file\.$/),
    });
    expect(loaded).toMatchObject({ message: expect.stringContaining(path) });
  });
});

it('a changed file is loaded again after it could not be loaded, had faults, or was missing, even with the same size and time', async () => {
  const folder = temporaryDirectory();
  const good = exporting({ subscriptions: { x: {} } });
  const subscriptions = [{ ...bare, name: 'x' }];
  const broken = [
    good.replace('x', 'Y'),
    'export default {',
    "throw new Error('not now');\nexport default 1;",
    '',
    good,
  ];
  for (const text of broken) {
    write(folder, text);
    utimesSync(join(folder, subscriptionsFileName), 1_700_000_000, 1_700_000_000);
    if (text !== good) expect(await load(folder)).toMatchObject({ code: 'configuration' });
    write(folder, good);
    expect(await load(folder)).toEqual(subscriptions);
  }
  rmSync(join(folder, subscriptionsFileName));
  expect(await load(folder)).toBeNull();
  write(folder, good);
  expect(await load(folder)).toEqual(subscriptions);
});

it('has a state within seconds, also while its code waits, or it cannot be read', async () => {
  const folder = temporaryDirectory();
  const path = write(folder, 'await new Promise(() => undefined);');
  const place = { workingDir: folder, settings: noSettings };
  const { fault, modifiedAtUs } = await readConfigState(place);
  expect(fault).toContain(`${path} did not load within 3 s.`);
  expect(modifiedAtUs).toBeGreaterThan(0);
  rmSync(path);
  symlinkSync(path, path);
  const unreadable = { fault: expect.stringContaining('ELOOP'), modifiedAtUs: null };
  expect(await readConfigState(place)).toEqual(unreadable);
});
