import { describeCursors } from '../contract/cursors-contract.ts';
import { describeIntake } from '../contract/intake-contract.ts';
import { describeQuarantine } from '../contract/quarantine-contract.ts';
import { openSqliteStore } from './sqlite-store.ts';

const open = async () => (await openSqliteStore()).store;

describeIntake('the SQLite store', open);
describeQuarantine('the SQLite store', open);
describeCursors('the SQLite store', openSqliteStore);
