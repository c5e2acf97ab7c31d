/** Kills a command at each of its requests, before and after the effect, and runs it again. */
import { expect } from 'vitest';
import {
  type AccountContext,
  openAccountContext,
} from '../features/subscriptions/account-context.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { momentsAt } from '../helpers/thorough.ts';
import { type CuttingProxy, startCuttingProxy } from './cutting-proxy.ts';

const requestsMax = 12;

export interface CutContext extends Omit<AccountContext, 'run'> {
  proxy: CuttingProxy;
  /** Runs the real program to its end. */
  run(argv: readonly string[]): Promise<{ code: number | null; err: string }>;
}

async function openContext(): Promise<CutContext> {
  const context = await openAccountContext();
  const target = new URL(context.sandbox.catalogueUrl).origin;
  const proxy = await startCuttingProxy(target);
  const through = (url: string) => url.replace(target, proxy.url);
  const env = {
    ...context.env,
    EARSHOT_CATALOGUE_URL: through(context.sandbox.catalogueUrl),
    EARSHOT_TOKEN_URL: through(context.sandbox.tokenUrl),
  };
  const run = (argv: readonly string[]) => spawnCommand(argv, { env, cwd: context.folder }).ended;
  return { ...context, env, proxy, run };
}

/** Runs a command and kills it at one request; it may end before that request. */
async function runCut(
  { proxy, env, folder }: CutContext,
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

/** Kills the command at each of its requests, runs it again and checks; returns the number of requests. */
export async function cutEverywhere(
  prepare: (context: CutContext) => Promise<void>,
  argv: readonly string[],
  check: (context: CutContext) => Promise<void>,
): Promise<number> {
  for (let number = 1; number <= requestsMax; number += 1) {
    for (const moment of momentsAt(number)) {
      const context = await openContext();
      await prepare(context);
      const outcome = await runCut(context, argv, number, moment);
      if (outcome === 'ended') return number - 1;
      const again = await context.run(argv);
      expect(again, `killed ${moment} request ${number}: ${again.err}`).toMatchObject({ code: 0 });
      await check(context);
      await context.receiver.close();
      await context.sandbox.close();
    }
  }
  return requestsMax;
}
