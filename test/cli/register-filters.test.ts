/** `earshot register` and the doctor look at filters before the catalogue does. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { refuseFilters } from '../../src/cli/register-filter.ts';
import type { DesiredSubscription } from '../../src/domain/subscription.ts';
import { type AccountWorld, creations, openAccountWorld, rows } from './account-world.ts';

const good = "Collection/Name eq 'SENTINEL-2'";
const wrong = "foo eq 'bar'";
const trap = `${good} and Online in (true)`;

function writeConfig({ folder }: AccountWorld, subscriptions: object): void {
  const text = `export default ${JSON.stringify({ subscriptions })};\n`;
  writeFileSync(join(folder, 'earshot.config.ts'), text);
}

describe('a filter that the catalogue would refuse', () => {
  it('is refused with the place, and nothing is created', async () => {
    const world = await openAccountWorld();
    for (const flags of [['--yes'], ['--dry-run'], ['--check']]) {
      const refused = await world.run(['register', '--filter', wrong, ...flags]);
      expect(refused).toMatchObject({ code: 2, out: '' });
      expect(refused.err).toContain('nothing was changed');
      expect(refused.err).toMatch(
        /\n {2}- "default", filter of Products: error: .*foo.*\n {6}foo eq 'bar'\n {6}\^\^\^/,
      );
    }
    expect(creations(world)).toBe(0);
    const skipped = await world.run([
      ...['register', '--filter', wrong, '--skip-filter-check', '--yes'],
    ]);
    expect(skipped.code).toBe(1);
    expect(creations(world)).toBe(1);
  });

  it('keeps the others from being made, too, and each error is told with its name', async () => {
    const world = await openAccountWorld();
    writeConfig(world, {
      a: { filter: good },
      b: { filter: wrong },
      c: { events: ['deleted'], filter: 'Online eq true', status: 'paused' },
    });
    const refused = await world.run(['register', '--yes']);
    expect(refused.code).toBe(2);
    expect(refused.err).toContain('- "b", filter of Products: error: ');
    expect(refused.err).toContain('- "c", filter of DeletedProducts: error: ');
    expect(refused.err).not.toContain('"a"');
    expect(rows(world)).toEqual([]);
  });

  it('is a warning for one that runs already: the catalogue has accepted it', () => {
    const one: DesiredSubscription = {
      name: 'default',
      events: ['created'],
      filter: wrong,
      status: 'running',
    };
    const told: unknown[] = [];
    const stderr = { write: (chunk: unknown) => told.push(chunk) > 0, once: () => undefined };
    refuseFilters([one], { steps: [] }, { env: {}, stderr });
    expect(told.join('')).toMatch(/^The filter of "default": error: .*foo/);
    const steps = [{ kind: 'create' as const, desired: one }];
    expect(() => refuseFilters([one], { steps }, { env: {}, stderr })).toThrow(/has errors/);
  });
});

it('what is only a trap is told, and registered', async () => {
  const world = await openAccountWorld();
  const done = await world.run(['register', '--filter', trap, '--yes']);
  expect(done.err).toMatch(/The filter of "default": warning: /);
  expect(done.code).toBe(0);
  expect(rows(world)).toMatchObject([{ filter: trap }]);
});

describe('earshot doctor', () => {
  const filterFindings = async ({ run }: AccountWorld) => {
    const findings: { check: string }[] = JSON.parse((await run(['doctor', '--json'])).out);
    return findings.filter(({ check }) => check === 'filters');
  };

  it('tells what is wrong with the filters that are wanted', async () => {
    const world = await openAccountWorld();
    writeConfig(world, { a: { filter: wrong }, b: { filter: trap }, c: { filter: good } });
    expect(await filterFindings(world)).toMatchObject([
      { state: 'fail', message: expect.stringMatching(/^"a": .*foo/) },
      { state: 'warn', message: expect.stringMatching(/^"b": /) },
    ]);
    writeConfig(world, { c: { filter: good } });
    expect(await filterFindings(world)).toMatchObject([{ state: 'pass' }]);
  });

  it('has nothing to say where nothing is wanted, and warns of a wrong one that is registered', async () => {
    const world = await openAccountWorld();
    expect(await filterFindings(world)).toEqual([]);
    await world.run(['register', '--filter', good, '--yes']);
    const { administration } = world.receiver.store;
    const [registration] = await administration.registrations();
    if (registration === undefined) throw new Error('Nothing is registered.');
    await administration.commit({ save: { ...registration, filter: wrong } });
    expect(await filterFindings(world)).toMatchObject([
      { state: 'warn', advice: expect.stringContaining('earshot subscriptions show default') },
    ]);
  });
});
