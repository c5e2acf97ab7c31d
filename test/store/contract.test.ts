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
import { openSqliteStore } from './sqlite-store.ts';

const open = async () => (await openSqliteStore()).store;

describeIntake('the SQLite store', open);
describeQuarantine('the SQLite store', open);
describeCursors('the SQLite store', openSqliteStore);
describeAdministration('the SQLite store', openSqliteStore);
describeBackups('the SQLite store', openSqliteStore);
describeSummaries('the SQLite store', openSqliteStore);
describeSummaryOutcomes('the SQLite store', openSqliteStore);
describeSummaryBudget('the SQLite store', openSqliteStore);
describeLocks('locks on files', () => {
  const dataDir = temporaryDirectory();
  return [createTakeLock(dataDir), createTakeLock(dataDir)];
});
