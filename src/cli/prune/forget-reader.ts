/** `earshot prune --forget-reader`: gives up the place of a reader that nobody uses any more. */
import type { DataConfig } from '../../config/read-config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { LogHolder } from '../../domain/pruning.ts';
import { sinkReader } from '../../domain/sinks.ts';
import { openStore } from '../../store/store.ts';
import { confirm } from '../confirm.ts';
import type { Io } from '../io.ts';
import { holderHint, holderText } from './holder-hint.ts';

export async function forgetReader(
  io: Io,
  config: DataConfig,
  key: string,
  options: { yes?: true },
): Promise<void> {
  const store = await openStore({ ...config, nowUs: io.nowUs, mustExist: true });
  try {
    const holders = await store.pruning.logHolders();
    const reader = holders.find((one) => one.kind === 'cursor' && one.key === key);
    if (reader === undefined) throw unknownReader(key, holders);
    refuseLeftovers(key, holders);
    await confirm(io, `Forget the place of ${holderText(reader)}?`, options);
    await store.pruning.forgetReader(key);
    io.stderr.write(`Forgotten. Where ${key} reads again, it is as if for the first time.\n`);
  } finally {
    await store.close();
  }
}

function unknownReader(key: string, holders: readonly LogHolder[]): AppError {
  const known = holders.filter(({ kind }) => kind === 'cursor').map((one) => one.key);
  const names = known.length === 0 ? 'There is none.' : `Known are: ${known.join(', ')}.`;
  return new AppError('usage', `There is no reader ${key}. ${names}`);
}

/** Without its place, a sink would be known no longer, and what is left of it could not be dropped. */
function refuseLeftovers(key: string, holders: readonly LogHolder[]): void {
  const left = holders.find((one) => one.kind !== 'cursor' && sinkReader(one.key) === key);
  if (left === undefined) return;
  throw new AppError('conflict', `There still is: ${holderText(left)}.`, {
    advice: holderHint(left),
  });
}
