/** The filter of `earshot register`: built from the flags of `query products`, and checked before the catalogue checks it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { DesiredSubscription } from '../../../src/core/terms/subscription.ts';
import { refuseFilters } from '../../../src/features/subscriptions/register-filter.ts';
import { expectEnd, printedJson, runCommand } from '../../helpers/fake-io.ts';
import { writeSubscriptions } from '../../helpers/filled-store.ts';
import { type AccountContext, creations, openAccountContext, rows } from './account-context.ts';
import { creating } from './plan-samples.ts';

const it = test.extend('context', () => openAccountContext());

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
    const context = await openAccountContext();
    writeFileSync(join(context.folder, 'alps.geojson'), JSON.stringify(alps));
    const flags = [
      ...['--collection', 'S2', '--type', 'S2MSI2A,S2MSI1C', '--platform', 'S2A'],
      ...['--tile', 'T32TQM', '--cloud-below', '20', '--name', 'S2A_MSIL2A_*'],
      ...['--bbox', '5,45,11,48', '--area', join(context.folder, 'alps.geojson')],
      ...['--filter', 'Online eq true or ContentDate/Start gt 2026-01-01T00:00:00Z'],
    ];
    const done = await context.run(['register', '--subscription', 'alps', ...flags, '--yes']);
    expect(done).toMatchObject({ code: 0 });
    const [row] = rows(context);
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
    // Repeating the same flags leads to the registered filter.
    const again = await context.run(['register', '--subscription', 'alps', ...flags, '--check']);
    expect(again).toMatchObject({ code: 0 });
  });

  it.each([
    ['48,6,45,11', 1, 2],
    ['177,-20,-178,-12', 0, 2],
    ['177,-20,-180,-12', 0, 1],
    ['5,45,11,48', 0, 1],
  ])('warns of --bbox %s only because of its own numbers', async (box, warnings, parts) => {
    const context = await openAccountContext();
    const done = await expectEnd(context.run(['register', `--bbox=${box}`, '--dry-run']), 0);
    expect(done.err.match(/warning/g) ?? []).toHaveLength(warnings);
    const [, filter = ''] = /Filter: (.*)\n/.exec(done.err) ?? [];
    expect(filter.match(/\(\(-?\d/g)).toHaveLength(parts);
    expect(await runCommand(['filter', 'check', filter])).toMatchObject({ code: 0, out: '' });
  });

  it('reports how many products of the last week match, before it changes anything', async () => {
    const context = await openAccountContext({
      sandbox: { past: { durationMs: 20 * 86_400_000, productsPerDay: 50 } },
    });
    const shown = await expectEnd(context.run('register --collection S2 --dry-run'), 0);
    const [, count] =
      /The filter matches ([\d,]+) products? published in the last 7 days/.exec(shown.err) ?? [];
    const since = new Date(context.sandbox.clock.now() - 7 * 86_400_000).toISOString();
    const url = `${context.sandbox.catalogueUrl}/odata/v1/Products?$count=true&$top=1&$filter=${encodeURIComponent(`Collection/Name eq 'SENTINEL-2' and PublicationDate ge ${since}`)}`;
    const answer = (await (await fetch(url)).json()) as Record<string, number>;
    expect(Number(count)).toBe(answer['@odata.count']);
    expect(Number(count)).toBeGreaterThan(0);
    expect(rows(context)).toEqual([]);
    const questions = context.sandbox.requests().filter(({ path }) => path.includes('/Products'));
    expect(questions).toHaveLength(2);
  });

  it('waits for a catalogue that requests a short delay', async ({ context }) => {
    let refusals = 1;
    const busy: typeof fetch = (input, init) => {
      const isCount = String(input instanceof Request ? input.url : input).includes('/Products');
      if (!isCount || refusals === 0) return fetch(input, init);
      refusals -= 1;
      return Promise.resolve(new Response('{}', { status: 429, headers: { 'retry-after': '1' } }));
    };
    const done = await context.run('register --collection S1 --yes', { fetch: busy });
    expect(done.err).toMatch(/The filter matches [\d,]+ products? published/);
    expect({ code: done.code, refusals }).toEqual({ code: 0, refusals: 0 });
  });

  it('registers although the catalogue cannot count', async ({ context }) => {
    const failing: typeof fetch = (input, init) =>
      String(input instanceof Request ? input.url : input).includes('/Products')
        ? Promise.resolve(new Response('busy', { status: 503 }))
        : fetch(input, init);
    const done = await context.run('register --collection S1 --yes', { fetch: failing });
    expect(done.err).toContain('Failed to count matching products: ');
    expect(done.code).toBe(0);
    expect(rows(context)).toMatchObject([{ filter: "Collection/Name eq 'SENTINEL-1'" }]);
  });

  it('accepts the flags for deletions, and refuses a field that deleted products lack', async () => {
    const context = await openAccountContext();
    const deleted = [
      'register',
      '--event',
      'deleted',
      '--collection',
      'S2',
      '--bbox',
      '5,45,11,48',
    ];
    const refused = await context.run([...deleted, '--filter', 'Online eq true', '--yes']);
    expect(refused).toMatchObject({ code: 2 });
    expect(refused.err).toContain('filter of DeletedProducts: error: ');
    expect(rows(context)).toEqual([]);
    const done = await context.run([...deleted, '--yes']);
    expect(done.err).toMatch(/The filter matches 0 products deleted in the last 7 days/);
    expect(done.code).toBe(0);
  });

  it.each<[string[], RegExp]>([
    [['--area', 'nowhere.geojson'], /--area: nowhere\.geojson cannot be read as GeoJSON/],
    [['--cloud-below', 'much'], /number greater than 0 and at most 100/],
    [['--sensed', '7d'], /unknown option '--sensed'/],
    [['--subscription', 'My Alps'], /lower-case letters, digits and dashes/],
  ])('refuses %j with the reason', async (flags, reason) => {
    const env = {
      EARSHOT_PUBLIC_URL: 'https://localhost:9',
      EARSHOT_ACCOUNT_USERNAME: 'u',
      EARSHOT_ACCOUNT_PASSWORD: 'p',
    };
    await expectEnd(runCommand(['register', ...flags, '--yes'], { env }), 2, reason);
  });

  it('does not subscribe to every product when only a name is given', async ({ context }) => {
    const refused = await expectEnd(context.run('register --subscription alps --yes'), 2);
    expect(refused.err).toContain('No subscription is described.');
    expect(rows(context)).toEqual([]);
  });
});

const good = "Collection/Name eq 'SENTINEL-2'";
const wrong = "foo eq 'bar'";
const suspect = `${good} and Online in (true)`;

describe('a filter that the catalogue would reject', () => {
  it('is refused with the position, and nothing is created', async ({ context }) => {
    for (const flags of [['--yes'], ['--dry-run'], ['--check']]) {
      const refused = await context.run(['register', '--filter', wrong, ...flags]);
      expect(refused).toMatchObject({ code: 2, out: '' });
      expect(refused.err).toContain('Nothing was changed');
      expect(refused.err).toMatch(
        /\n {2}- "default", filter of Products: error: .*foo.*\n {6}foo eq 'bar'\n {6}\^\^\^/,
      );
    }
    expect(creations(context)).toBe(0);
    const skipped = await context.run([
      ...['register', '--filter', wrong, '--skip-filter-check', '--yes'],
    ]);
    expect(skipped.code).toBe(1);
    expect(creations(context)).toBe(1);
  });

  it('prevents the creation of the others, too, and each error names its subscription', async () => {
    const context = await openAccountContext();
    writeSubscriptions(context, {
      a: { filter: good },
      b: { filter: wrong },
      c: { events: ['deleted'], filter: 'Online eq true', status: 'paused' },
    });
    const refused = await expectEnd(context.run('register --yes'), 2);
    expect(refused.err).toContain('- "b", filter of Products: error: ');
    expect(refused.err).toContain('- "c", filter of DeletedProducts: error: ');
    expect(refused.err).not.toContain('"a"');
    expect(rows(context)).toEqual([]);
  });

  it('causes only a warning if registered: the catalogue has accepted it', () => {
    const one: DesiredSubscription = {
      name: 'default',
      type: 'push',
      events: ['created'],
      filter: wrong,
      status: 'running',
    };
    const written: unknown[] = [];
    const stderr = { write: (chunk: unknown) => written.push(chunk) > 0, once: () => undefined };
    refuseFilters([one], { differences: [] }, { env: {}, stderr });
    expect(written.join('')).toMatch(/^The filter of "default": error: .*foo/);
    const differences = [creating(one)];
    expect(() => refuseFilters([one], { differences }, { env: {}, stderr })).toThrow(/has errors/);
  });
});

it('a filter with a common mistake is registered with a warning', async ({ context }) => {
  const done = await expectEnd(context.run(['register', '--filter', suspect, '--yes']), 0);
  expect(done.err).toMatch(/The filter of "default": warning: /);
  expect(rows(context)).toMatchObject([{ filter: suspect }]);
});

describe('earshot doctor', () => {
  const filterFindings = async ({ run }: AccountContext) => {
    const findings: { check: string }[] = await printedJson(run('doctor --json'));
    return findings.filter(({ check }) => check === 'filters');
  };

  it('reports findings in the configured filters', async ({ context }) => {
    writeSubscriptions(context, {
      a: { filter: wrong },
      b: { filter: suspect },
      c: { filter: good },
    });
    expect(await filterFindings(context)).toMatchObject([
      { level: 'critical', text: expect.stringMatching(/^"a": .*foo/) },
      { level: 'warning', text: expect.stringMatching(/^"b": /) },
    ]);
    writeSubscriptions(context, { c: { filter: good } });
    expect(await filterFindings(context)).toMatchObject([{ level: 'ok' }]);
  });

  it('reports nothing without configured filters, and warns of a registered filter with errors', async () => {
    const context = await openAccountContext();
    expect(await filterFindings(context)).toEqual([]);
    await context.run(['register', '--filter', good, '--yes']);
    const { administration } = context.receiver.store;
    const [registration] = await administration.registrations();
    if (registration === undefined) throw new Error('Nothing is registered.');
    await administration.commit({ save: { ...registration, filter: wrong } });
    expect(await filterFindings(context)).toMatchObject([
      { level: 'warning', nextStep: expect.stringContaining('earshot subscriptions show default') },
    ]);
  });
});
