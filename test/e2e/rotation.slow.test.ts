/** Rotation of credentials under load: no notification is refused, even when the rotation is killed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createRandom } from '../../src/sandbox/clock.ts';
import {
  type AccountContext,
  openAccountContext,
} from '../features/subscriptions/account-context.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { times } from '../helpers/thorough.ts';

const credentialsFile = z.object({
  pairs: z.array(z.object({ username: z.string(), password: z.string() })),
});

function pairsOf({ dataDir }: AccountContext) {
  const text = readFileSync(join(dataDir, 'endpoint-credentials.json'), 'utf8');
  return credentialsFile.parse(JSON.parse(text)).pairs;
}

/** Opens a context with a registered subscription that gets a hundred notifications a second. */
async function openLoadedContext(): Promise<AccountContext> {
  const context = await openAccountContext({ sandbox: { count: 1_000_000, ratePerSecond: 100 } });
  const registered = await context.run(['register', '--event', 'created', '--yes']);
  expect(registered, registered.err).toMatchObject({ code: 0 });
  return context;
}

function statusesOf({ sandbox }: AccountContext): Set<number | null> {
  return new Set(sandbox.entries().flatMap(({ attempts }) => attempts));
}

const rotate = ['credentials', 'rotate', '--wait', '3'];

describe('a rotation under load', () => {
  it('refuses no delivery, and ends with the new credentials only', async () => {
    const context = await openLoadedContext();
    const [before] = pairsOf(context);
    const rotated = await spawnCommand(rotate, { env: context.env, cwd: context.folder }).ended;
    expect(rotated, rotated.err).toMatchObject({ code: 0 });
    const [after, ...more] = pairsOf(context);
    expect(more).toEqual([]);
    expect(after).not.toEqual(before);
    const delivered = context.sandbox.totals().delivered;
    await expect.poll(() => context.sandbox.totals().delivered).toBeGreaterThan(delivered + 50);
    expect(statusesOf(context)).toEqual(new Set([200]));
    const marks = await context.receiver.store.administration.deliveryMarks();
    expect(marks.map(({ username }) => username).sort()).toEqual(
      [before?.username, after?.username].sort(),
    );
  }, 60_000);

  it('refuses no delivery when it is killed repeatedly', async () => {
    const context = await openLoadedContext();
    const [before] = pairsOf(context);
    const random = createRandom(20_261_121);
    for (let kills = 0; kills < times(4, 16); kills += 1) {
      const child = spawnCommand(rotate, { env: context.env, cwd: context.folder });
      const killAfter = context.sandbox.totals().delivered + random.integer(20, 350);
      await expect
        .poll(() => context.sandbox.totals().delivered, { timeout: 20_000, interval: 10 })
        .toBeGreaterThan(killAfter);
      child.kill();
      await child.ended;
    }
    const rotated = await spawnCommand(rotate, { env: context.env, cwd: context.folder }).ended;
    expect(rotated, rotated.err).toMatchObject({ code: 0 });
    expect(pairsOf(context)).toHaveLength(1);
    expect(pairsOf(context)).not.toEqual([before]);
    expect(statusesOf(context)).toEqual(new Set([200]));
  }, 90_000);
});
