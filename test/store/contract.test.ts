import { createTakeLock } from '../../src/store/engine/locks.ts';
import { describeAdministration } from '../contract/administration-contract.ts';
import { describeBackups } from '../contract/backups-contract.ts';
import { describeCursors } from '../contract/cursors-contract.ts';
import { describeIntake } from '../contract/intake-contract.ts';
import { describeLocks } from '../contract/locks-contract.ts';
import { describeQuarantine } from '../contract/quarantine-contract.ts';
import { describeSummaries } from '../contract/summaries-contract.ts';
import { describeSummaryBudget } from '../contract/summary-budget-contract.ts';
import { describeSummaryOutcomes } from '../contract/summary-outcomes-contract.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openLocalStore } from './local-store.ts';
import { openSqliteStore } from './sqlite-store.ts';

const open = async () => (await openSqliteStore()).store;

describeIntake('the SQLite store', open);
describeQuarantine('the SQLite store', open);
describeCursors('the SQLite store', openSqliteStore);
describeAdministration('the store', openLocalStore);
describeBackups('the store', openLocalStore);
describeSummaries('the store', openLocalStore);
describeSummaryOutcomes('the store', openLocalStore);
describeSummaryBudget('the store', openLocalStore);
describeLocks('locks on files', () => {
  const dataDir = temporaryDirectory();
  return [createTakeLock(dataDir), createTakeLock(dataDir)];
});
