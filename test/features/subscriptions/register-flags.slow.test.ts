/** The filter of `earshot register`: built from the flags of `query products`, and checked before the catalogue checks it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { refuseFilters } from '../../../src/features/subscriptions/register-filter.ts';
import { expectEnd, expectRefusal, runCommand } from '../../helpers/fake-io.ts';
import { writeSubscriptions } from '../../helpers/filled-store.ts';
import { creations, openAccountContext, rows } from './account-context.ts';
import { creating, desired } from './plan-samples.ts';

const it = test.extend('context', () => openAccountContext());

const alps = '{"type":"Polygon","coordinates":[[[5,45],[11,45],[11,48],[5,48],[5,45]]]}';

describe('register with product flags', () => {
  it('joins all of them by "and" to a filter that `filter check` accepts without findings', async () => {
    const context = await openAccountContext();
    writeFileSync(join(context.folder, 'alps.geojson'), alps);
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
    const parts = ["Collection/Name eq 'SENTINEL-2'", 'S2MSI1C', "'32TQM'", 'lt 20', 'startswith('];
    for (const part of parts) expect(filter).toContain(part);
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

  it('reports how many products of the last week match, also after a short delay, before it changes anything', async () => {
    const context = await openAccountContext({
      sandbox: { past: { durationMs: 20 * 86_400_000, productsPerDay: 50 } },
    });
    context.sandbox.service.change({ retryAfterSeconds: 1, nextQueries: { rateLimited: 1 } });
    const shown = await expectEnd(context.run('register --collection S2 --dry-run'), 0);
    const [, count] =
      /The filter matches ([\d,]+) products? published in the last 7 days/.exec(shown.err) ?? [];
    const since = new Date(context.sandbox.clock.now() - 7 * 86_400_000).toISOString();
    const filter = `Collection/Name eq 'SENTINEL-2' and PublicationDate ge ${since}`;
    const url = new URL(`${context.sandbox.catalogueUrl}/odata/v1/Products?$count=true&$top=1`);
    url.searchParams.set('$filter', filter);
    const answer = (await (await fetch(url)).json()) as Record<string, number>;
    expect(Number(count)).toBe(answer['@odata.count']);
    expect(Number(count)).toBeGreaterThan(0);
    expect(rows(context)).toEqual([]);
  });

  it.each<[string[], RegExp]>([
    [['--area', 'nowhere.geojson'], /--area: nowhere\.geojson cannot be read as GeoJSON/],
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

it('a filter that the catalogue would reject is refused with the position for each subscription, and nothing is created', async ({
  context,
}) => {
  writeSubscriptions(context, {
    a: { filter: good },
    b: { filter: wrong },
    c: { events: ['deleted'], filter: 'Online eq true', status: 'paused' },
  });
  for (const flag of ['--yes', '--dry-run', '--check']) {
    const err = await expectRefusal(context.run(['register', flag]), 'Nothing was changed');
    expect(err).toMatch(
      /\n {2}- "b", filter of Products: error: .*foo.*\n {6}foo eq 'bar'\n {6}\^\^\^/,
    );
    expect(err).toContain('- "c", filter of DeletedProducts: error: ');
    expect(err).not.toContain('"a"');
  }
  expect(creations(context)).toBe(0);
});

it('a filter that the catalogue would reject causes only a warning if registered: the catalogue has accepted it', () => {
  const one = { ...desired, filter: wrong };
  const written: unknown[] = [];
  const stderr = { write: (chunk: unknown) => written.push(chunk) > 0, once: () => undefined };
  refuseFilters([one], { differences: [] }, { env: {}, stderr });
  expect(written.join('')).toMatch(/^The filter of "alps": error: .*foo/);
  const differences = [creating(one)];
  expect(() => refuseFilters([one], { differences }, { env: {}, stderr })).toThrow(/has errors/);
});
