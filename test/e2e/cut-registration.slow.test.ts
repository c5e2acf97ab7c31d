/** SIGKILL at every request of a first registration, before or after its effect: the next run has the usual result. */
import { expect, it } from 'vitest';
import { openAccountContext, rows } from '../features/subscriptions/account-context.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { isThorough } from '../helpers/thorough.ts';
import { type Moment, startWatchedProxy } from './watched-proxy.ts';

const filter = "Collection/Name eq 'SENTINEL-2'";
const argv = ['register', '--filter', filter, '--yes'];
/** Login, a list for the plan, the count of last week's products, two lists before the change, create, list. */
const requests = 7;

/** Registers a first subscription, kills the command at this request, and repeats it. */
async function cutAt(number: number, moment: Moment): Promise<'killed' | 'ended'> {
  const { sandbox, receiver, folder, ...context } = await openAccountContext();
  const target = new URL(sandbox.catalogueUrl).origin;
  const proxy = await startWatchedProxy(target);
  const env = {
    ...context.env,
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl.replace(target, proxy.url),
    EARSHOT_TOKEN_URL: sandbox.tokenUrl.replace(target, proxy.url),
  };
  const child = spawnCommand(argv, { env, cwd: folder });
  proxy.cutAt(number, moment, child.kill);
  const { code } = await child.ended;
  proxy.letPass();
  const again = await spawnCommand(argv, { env, cwd: folder }).ended;
  expect(again, `killed ${moment} request ${number}: ${again.err}`).toMatchObject({ code: 0 });
  expect(rows({ sandbox })).toEqual([{ name: 'default', status: 'running', filter }]);
  await receiver.close();
  await sandbox.close();
  return code === null ? 'killed' : 'ended';
}

it('a first registration has the usual result after a kill at each of its requests', async () => {
  for (let number = 1; number <= requests; number += 1) {
    const usual = number % 2 === 1 ? (['before'] as const) : (['after'] as const);
    for (const moment of isThorough ? (['before', 'after'] as const) : usual)
      expect(await cutAt(number, moment)).toBe('killed');
  }
  expect(await cutAt(requests + 1, 'before')).toBe('ended');
}, 120_000);
