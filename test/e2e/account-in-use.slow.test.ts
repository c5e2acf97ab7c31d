/** The real program on one account: over years of the catalogue's clock, concurrently, and interrupted. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sessionFileName } from '../../src/admin/session.ts';
import {
  type AccountContext,
  openAccountContext,
  rows,
} from '../features/subscriptions/account-context.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';

const filter = "Collection/Name eq 'SENTINEL-2'";

function spawned({ env, folder }: AccountContext, argv: readonly string[]) {
  return spawnCommand(argv, { env, cwd: folder });
}

async function openRegistered(): Promise<AccountContext> {
  const context = await openAccountContext();
  const registered = await spawned(context, ['register', '--filter', filter, '--yes']).ended;
  expect(registered, registered.err).toMatchObject({ code: 0 });
  return context;
}

describe('subscriptions over years of the catalogue’s clock', () => {
  it('are maintained: resumed after 61 days, recreated after 366 more', async () => {
    const context = await openRegistered();
    context.passDays(61);
    const resumed = await spawned(context, ['maintain']).ended;
    expect(resumed, resumed.out + resumed.err).toMatchObject({ code: 0 });
    expect(resumed.out).toContain('resumed');
    expect(rows(context)).toMatchObject([{ status: 'running' }]);
    // By the clock of this machine, the tokens of the year before would still be valid.
    rmSync(join(`${context.env.EARSHOT_DATA_DIR}`, sessionFileName));
    context.passDays(366);
    expect(rows(context)).toEqual([]);
    const recreated = await spawned(context, ['maintain']).ended;
    expect(recreated, recreated.out + recreated.err).toMatchObject({ code: 0 });
    expect(rows(context)).toEqual([{ name: 'default', status: 'running', filter }]);
  }, 60_000);
});

describe('concurrent commands', () => {
  it('leave one subscription, with the filter of the last one', async () => {
    const context = await openAccountContext();
    const filters = ['a', 'b', 'c'].map((name) => `contains(Name,'${name}')`);
    const ended = await Promise.all([
      ...filters.map((each) => spawned(context, ['register', '--filter', each, '--yes']).ended),
      spawned(context, ['maintain']).ended,
      spawned(context, ['subscriptions', 'list']).ended,
    ]);
    for (const { code, err } of ended) expect(code, err).toBe(0);
    const left = rows(context);
    expect(left).toHaveLength(1);
    expect(filters).toContain(left[0]?.filter);
    expect(await context.run(['register', '--check'])).toMatchObject({ code: 0 });
  }, 60_000);
});

describe('an interrupted command', () => {
  it('ends soon when the catalogue does not answer, and creates nothing more', async () => {
    const context = await openAccountContext();
    // A session exists, so the first request lists the subscriptions.
    await context.run(['subscriptions', 'list']);
    context.sandbox.service.change({ answerDelayMs: 60_000 });
    const asked = context.sandbox.requests().length;
    const command = spawned(context, ['register', '--filter', filter, '--yes']);
    await expect.poll(() => context.sandbox.requests().length, { timeout: 20_000 }).toBe(asked + 1);
    const began = performance.now();
    command.interrupt();
    const { code, err } = await command.ended;
    expect(performance.now() - began).toBeLessThan(5_000);
    expect([code, err]).toEqual([1, expect.stringContaining('Stopped.')]);
    expect(rows(context)).toEqual([]);
  }, 60_000);
});
