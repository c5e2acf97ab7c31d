/** `earshot register` with the flags of `query products`, against the sandbox's catalogue. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openAccountWorld, rows } from './account-world.ts';
import { runCommand } from './fake-io.ts';

const polygon = (ring: number[][]) => ({ type: 'Polygon', coordinates: [ring] });
const alps = polygon([
  [5, 45],
  [11, 45],
  [11, 48],
  [5, 48],
  [5, 45],
]);

describe('register with product flags', () => {
  it('joins all of them by "and" to a filter that `filter check` accepts without findings', async () => {
    const world = await openAccountWorld();
    writeFileSync(join(world.folder, 'alps.geojson'), JSON.stringify(alps));
    const flags = [
      ...['--collection', 'S2', '--type', 'S2MSI2A,S2MSI1C', '--platform', 'S2A'],
      ...['--tile', 'T32TQM', '--cloud-below', '20', '--name', 'S2A_MSIL2A_*'],
      ...['--bbox', '5,45,11,48', '--area', join(world.folder, 'alps.geojson')],
      ...['--filter', 'Online eq true or ContentDate/Start gt 2026-01-01T00:00:00Z'],
    ];
    const done = await world.run(['register', '--subscription', 'alps', ...flags, '--yes']);
    expect(done).toMatchObject({ code: 0 });
    const [row] = rows(world);
    expect(row).toMatchObject({ name: 'alps', status: 'running' });
    const filter = row?.filter ?? '';
    for (const part of [
      "Collection/Name eq 'SENTINEL-2'",
      'S2MSI1C',
      "'32TQM'",
      'lt 20',
      'startswith(Name',
    ])
      expect(filter).toContain(part);
    expect(filter.match(/OData\.CSC\.Intersects/g)).toHaveLength(2);
    expect(filter).toMatch(
      / and \(Online eq true or ContentDate\/Start gt 2026-01-01T00:00:00Z\)$/,
    );
    expect(done.err).toContain(`Filter: ${filter}\n`);
    const checked = await runCommand(['filter', 'check', filter]);
    expect(checked).toMatchObject({ code: 0, out: '' });
    // The same flags again describe what is registered already.
    const again = await world.run(['register', '--subscription', 'alps', ...flags, '--check']);
    expect(again).toMatchObject({ code: 0 });
  });

  it.each([
    ['48,6,45,11', 1, 2],
    ['177,-20,-178,-12', 0, 2],
    ['177,-20,-180,-12', 0, 1],
    ['5,45,11,48', 0, 1],
  ])('warns of --bbox %s only about its own numbers', async (box, warnings, parts) => {
    const world = await openAccountWorld();
    const done = await world.run(['register', `--bbox=${box}`, '--dry-run']);
    expect(done).toMatchObject({ code: 0 });
    expect(done.err.match(/warning/g) ?? []).toHaveLength(warnings);
    const [, filter = ''] = /Filter: (.*)\n/.exec(done.err) ?? [];
    expect(filter.match(/\(\(-?\d/g)).toHaveLength(parts);
    expect(await runCommand(['filter', 'check', filter])).toMatchObject({ code: 0, out: '' });
  });

  it('reports how many products of the last week match, before anything is changed', async () => {
    const world = await openAccountWorld({
      sandbox: { past: { durationMs: 20 * 86_400_000, productsPerDay: 50 } },
    });
    const shown = await world.run(['register', '--collection', 'S2', '--dry-run']);
    expect(shown).toMatchObject({ code: 0 });
    const [, count] =
      /It matches ([\d,]+) products? that the catalogue published in the last 7 days/.exec(
        shown.err,
      ) ?? [];
    const since = new Date(world.sandbox.clock.now() - 7 * 86_400_000).toISOString();
    const url = `${world.sandbox.catalogueUrl}/odata/v1/Products?$count=true&$top=1&$filter=${encodeURIComponent(`Collection/Name eq 'SENTINEL-2' and PublicationDate ge ${since}`)}`;
    const answer = (await (await fetch(url)).json()) as Record<string, number>;
    expect(Number(count)).toBe(answer['@odata.count']);
    expect(Number(count)).toBeGreaterThan(0);
    expect(rows(world)).toEqual([]);
    const questions = world.sandbox.requests().filter(({ path }) => path.includes('/Products'));
    expect(questions).toHaveLength(2);
  });

  it('waits for a catalogue that asks for a short pause', async () => {
    const world = await openAccountWorld();
    let refusals = 1;
    const busy: typeof fetch = (input, init) => {
      const isCount = String(input instanceof Request ? input.url : input).includes('/Products');
      if (!isCount || refusals === 0) return fetch(input, init);
      refusals -= 1;
      return Promise.resolve(new Response('{}', { status: 429, headers: { 'retry-after': '1' } }));
    };
    const done = await world.run(['register', '--collection', 'S1', '--yes'], { fetch: busy });
    expect(done.err).toMatch(/It matches [\d,]+ products? that the catalogue published/);
    expect({ code: done.code, refusals }).toEqual({ code: 0, refusals: 0 });
  });

  it('registers although the catalogue cannot count', async () => {
    const world = await openAccountWorld();
    const failing: typeof fetch = (input, init) =>
      String(input instanceof Request ? input.url : input).includes('/Products')
        ? Promise.resolve(new Response('busy', { status: 503 }))
        : fetch(input, init);
    const done = await world.run(['register', '--collection', 'S1', '--yes'], { fetch: failing });
    expect(done.err).toContain('Matching products were not counted: ');
    expect(done.code).toBe(0);
    expect(rows(world)).toMatchObject([{ filter: "Collection/Name eq 'SENTINEL-1'" }]);
  });

  it('takes the flags for deletions, and refuses a field that deleted products lack', async () => {
    const world = await openAccountWorld();
    const deleted = [
      'register',
      '--event',
      'deleted',
      '--collection',
      'S2',
      '--bbox',
      '5,45,11,48',
    ];
    const refused = await world.run([...deleted, '--filter', 'Online eq true', '--yes']);
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.err).toContain('filter of DeletedProducts: error: ');
    expect(rows(world)).toEqual([]);
    const done = await world.run([...deleted, '--yes']);
    expect(done.err).toMatch(/It matches 0 products that the catalogue deleted in the last 7 days/);
    expect(done.code).toBe(0);
  });

  it.each<[string[], RegExp]>([
    [['--area', 'nowhere.geojson'], /--area: nowhere\.geojson cannot be read as GeoJSON/],
    [['--area', 'a.geojson', '--intersects', 'b.geojson'], /cannot be used with option '--area/],
    [['--cloud-below', 'much'], /number from 0 to 100/],
    [['--sensed', '7d'], /unknown option '--sensed'/],
    [['--subscription', 'My Alps'], /lower-case letters, digits and dashes/],
  ])('refuses %j with the reason', async (flags, reason) => {
    const env = {
      EARSHOT_PUBLIC_URL: 'https://localhost:9',
      EARSHOT_ACCOUNT_USERNAME: 'u',
      EARSHOT_ACCOUNT_PASSWORD: 'p',
    };
    const { code, err } = await runCommand(['register', ...flags, '--yes'], { env });
    expect(err).toMatch(reason);
    expect(code).toBe(2);
  });

  it('does not subscribe to every product because of a name alone', async () => {
    const world = await openAccountWorld();
    const refused = await world.run(['register', '--subscription', 'alps', '--yes']);
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.err).toContain('No subscription is described.');
    expect(rows(world)).toEqual([]);
  });
});
