/** Rotation of credentials under load: no notification is refused, even when the rotation is killed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
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

it('a rotation under load refuses no delivery, also when it is killed repeatedly', async () => {
  const context = await openAccountContext({ sandbox: { count: 1_000_000, ratePerSecond: 100 } });
  const { sandbox, env, folder: cwd } = context;
  const registered = await context.run(['register', '--event', 'created', '--yes']);
  expect(registered, registered.err).toMatchObject({ code: 0 });
  const rotate = () => spawnCommand(['credentials', 'rotate', '--wait', '3'], { env, cwd });
  const delivered = () => sandbox.totals().delivered;
  const deliver = (count: number) => {
    const enough = delivered() + count;
    return expect.poll(delivered, { timeout: 20_000, interval: 10 }).toBeGreaterThan(enough);
  };
  const [first] = pairsOf(context);
  await deliver(50);
  const random = createRandom(20_261_121);
  for (let kills = 0; kills < times(4, 16); kills += 1) {
    const child = rotate();
    await deliver(random.integer(20, 350));
    child.kill();
    await child.ended;
  }
  const rotated = await rotate().ended;
  expect(rotated, rotated.err).toMatchObject({ code: 0 });
  const [last, ...more] = pairsOf(context);
  expect(more).toEqual([]);
  expect(last).not.toEqual(first);
  await deliver(50);
  const statuses = sandbox.entries().flatMap(({ attempts }) => attempts);
  expect(new Set(statuses)).toEqual(new Set([200]));
  const marks = await context.receiver.store.administration.deliveryMarks();
  const usernames = marks.map(({ username }) => username);
  expect(usernames).toEqual(expect.arrayContaining([first?.username, last?.username]));
}, 120_000);
