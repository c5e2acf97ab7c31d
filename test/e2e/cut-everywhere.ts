/** Kills a command at each of its requests, before and after the effect, and runs it again. */
import { expect } from 'vitest';
import { type AccountWorld, openAccountWorld } from '../cli/account-world.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { momentsAt } from '../helpers/thorough.ts';
import { type CuttingProxy, startCuttingProxy } from './cutting-proxy.ts';

const requestsMax = 12;

export interface CutWorld extends Omit<AccountWorld, 'run'> {
  proxy: CuttingProxy;
  /** Runs the real program to its end. */
  run(argv: readonly string[]): Promise<{ code: number | null; err: string }>;
}

async function openWorld(): Promise<CutWorld> {
  const world = await openAccountWorld();
  const target = new URL(world.sandbox.catalogueUrl).origin;
  const proxy = await startCuttingProxy(target);
  const through = (url: string) => url.replace(target, proxy.url);
  const env = {
    ...world.env,
    EARSHOT_CATALOGUE_URL: through(world.sandbox.catalogueUrl),
    EARSHOT_TOKEN_URL: through(world.sandbox.tokenUrl),
  };
  const run = (argv: readonly string[]) => spawnCommand(argv, { env, cwd: world.folder }).ended;
  return { ...world, env, proxy, run };
}

/** Runs a command and kills it at one request; it may end before it comes to that request. */
async function runCut(
  { proxy, env, folder }: CutWorld,
  argv: readonly string[],
  number: number,
  moment: 'before' | 'after',
): Promise<'killed' | 'ended'> {
  const child = spawnCommand(argv, { env, cwd: folder });
  proxy.cutAt(number, moment, child.kill);
  const { code } = await child.ended;
  proxy.letPass();
  return code === null ? 'killed' : 'ended';
}

/** Tells how many requests the command makes, at each of which it was killed. */
export async function cutEverywhere(
  prepare: (world: CutWorld) => Promise<void>,
  argv: readonly string[],
  check: (world: CutWorld) => Promise<void>,
): Promise<number> {
  for (let number = 1; number <= requestsMax; number += 1) {
    for (const moment of momentsAt(number)) {
      const world = await openWorld();
      await prepare(world);
      const outcome = await runCut(world, argv, number, moment);
      if (outcome === 'ended') return number - 1;
      const again = await world.run(argv);
      expect(again, `killed ${moment} request ${number}: ${again.err}`).toMatchObject({ code: 0 });
      await check(world);
      await world.receiver.close();
      await world.sandbox.close();
    }
  }
  return requestsMax;
}
