/** The contract of the store: the same tests run with an SQLite log and with nodes of a shared log. */
import { describe } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { isThorough } from '../../helpers/thorough.ts';
import { useOtherStore } from '../../store/local-store.ts';
import { createDatabase, hasPostgres, openNode, useServer } from './shared-log-context.ts';

describe.runIf(hasPostgres)('the store with a shared log', async () => {
  const server = useServer();
  useOtherStore(async () => {
    const { store, dataDir, reopen } = await openNode({ url: await createDatabase(server()) });
    return { store: reading(store), dataDir, reopen: async () => reading(await reopen()) };
  });
  await import('../../store/intake.test.ts');
  await import('../../admin/sql.test.ts');
  await import('../coverage/sql.test.ts');
  await import('../../store/recovered-events.test.ts');
  if (!isThorough) return;
  await import('../sinks/sql.test.ts');
  await import('../alerts/sql.test.ts');
  await import('../summary/sql.test.ts');
});

/** A store whose reads include its own deliveries: a node applies them after they were stored. */
function reading(store: Store): Store {
  return {
    ...store,
    accept: async (delivery) => {
      const receipt = await store.accept(delivery);
      await store.shared?.caughtUp();
      return receipt;
    },
  };
}
