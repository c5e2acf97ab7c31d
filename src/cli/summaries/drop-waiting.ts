/** Carries out `earshot summarize --drop`: what waits is not written. */
import { dataSections, loadConfig } from '../../config/config.ts';
import { openStore } from '../../store/store.ts';
import type { Io } from '../io.ts';

/** Needs neither a model nor the product index. */
export async function dropWaiting(ids: readonly number[] | 'all', io: Io): Promise<void> {
  const store = await openStore({
    ...loadConfig(io, dataSections),
    nowUs: io.nowUs,
    mustExist: true,
  });
  try {
    const count = await store.summaries.drop({ ids });
    io.stderr.write(
      count > 0
        ? `${count} dropped.\n`
        : 'Nothing to drop. Only what waits can be dropped: `earshot query summaries --state waiting` shows it.\n',
    );
  } finally {
    await store.close();
  }
}
