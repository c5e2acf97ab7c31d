/** The real program on one account: over the catalogue's years, in company, and interrupted. */
import { describe, expect, it } from 'vitest';
import { type AccountWorld, openAccountWorld, rows } from '../cli/account-world.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';

const filter = "Collection/Name eq 'SENTINEL-2'";

function spawned({ env, folder }: AccountWorld, argv: readonly string[]) {
  return spawnCommand(argv, { env, cwd: folder });
}

async function openRegistered(): Promise<AccountWorld> {
  const world = await openAccountWorld();
  const registered = await spawned(world, ['register', '--filter', filter, '--yes']).ended;
  expect(registered, registered.err).toMatchObject({ code: 0 });
  return world;
}

describe('years that pass at the catalogue alone', () => {
  it('are maintained by its clock: resumed after 61 days, made anew after 366 more', async () => {
    const world = await openRegistered();
    world.passDays(61);
    const resumed = await spawned(world, ['maintain']).ended;
    expect(resumed, resumed.out + resumed.err).toMatchObject({ code: 0 });
    expect(resumed.out).toContain('resumed');
    expect(rows(world)).toMatchObject([{ status: 'running' }]);
    world.passDays(366);
    expect(rows(world)).toEqual([]);
    const recreated = await spawned(world, ['maintain']).ended;
    expect(recreated, recreated.out + recreated.err).toMatchObject({ code: 0 });
    expect(rows(world)).toEqual([{ name: 'default', status: 'running', filter }]);
  }, 60_000);
});

describe('commands at the same time', () => {
  it('leave one subscription, with the filter of the last one', async () => {
    const world = await openAccountWorld();
    const filters = ['a', 'b', 'c'].map((name) => `contains(Name,'${name}')`);
    const ended = await Promise.all([
      ...filters.map((each) => spawned(world, ['register', '--filter', each, '--yes']).ended),
      spawned(world, ['maintain']).ended,
      spawned(world, ['subscriptions', 'list']).ended,
    ]);
    for (const { code, err } of ended) expect(code, err).toBe(0);
    const left = rows(world);
    expect(left).toHaveLength(1);
    expect(filters).toContain(left[0]?.filter);
    expect(await world.run(['register', '--check'])).toMatchObject({ code: 0 });
  }, 60_000);
});

describe('a command that is interrupted', () => {
  it('ends soon though the catalogue does not answer, and makes nothing more', async () => {
    const world = await openAccountWorld();
    // A session is there, so that the first request is the list.
    await world.run(['subscriptions', 'list']);
    world.sandbox.service.change({ answerDelayMs: 60_000 });
    const asked = world.sandbox.requests().length;
    const command = spawned(world, ['register', '--filter', filter, '--yes']);
    await expect.poll(() => world.sandbox.requests().length, { timeout: 20_000 }).toBe(asked + 1);
    const began = performance.now();
    command.interrupt();
    const { code, err } = await command.ended;
    expect(performance.now() - began).toBeLessThan(5_000);
    expect([code, err]).toEqual([1, expect.stringContaining('Stopped.')]);
    expect(rows(world)).toEqual([]);
  }, 60_000);
});
