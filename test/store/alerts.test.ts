import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { openStore, openStoreReader } from '../../src/store/store.ts';
import { describeAlerts, finding, settle } from '../contract/alerts-contract.ts';
import { openLocalStore } from './local-store.ts';
import { openSqliteStore } from './sqlite-store.ts';

const atUs = 1_795_000_000_000_001;
const weekUs = 7 * 86_400_000_000;

describeAlerts('the store', openLocalStore);

function openFile(dataDir: string) {
  const database = new Sqlite(join(dataDir, databaseFileName));
  onTestFinished(() => void database.close());
  return database;
}

describe('the store of alerts', () => {
  it('raises one, though two programs find it at the same moment', async () => {
    const { store, dataDir } = await openSqliteStore();
    const other = await openStore({ dataDir, nowUs: () => 0 });
    onTestFinished(() => other.close());
    const both = [store, other, store, other].map((one) => settle(one.alerts, [finding()]));
    const changes = await Promise.all(both);
    expect(changes.flatMap(({ raised }) => raised)).toHaveLength(1);
    expect(await other.alerts.untold(atUs)).toHaveLength(2);
  });

  it('keeps no delivery that was told, and none long that was given up', async () => {
    const { store, dataDir } = await openSqliteStore();
    const { alerts } = store;
    const rows = () =>
      openFile(dataDir).prepare('SELECT count(*) FROM alert_delivery').pluck().get();
    const subjects = ['alps', 'andes', 'altai'];
    const findings = subjects.map((subject) => finding({ subject }));
    await settle(alerts, findings, { channels: ['url'] });
    const [first, second, third] = await alerts.dueDeliveries({ nowUs: atUs, limit: 9 });
    await alerts.settleDelivery({ id: first?.id ?? 0, atUs, outcome: 'told' });
    expect(rows()).toBe(2);
    const givenUp = { outcome: 'given-up', error: 'It answered 404.' } as const;
    await alerts.settleDelivery({ id: second?.id ?? 0, atUs, ...givenUp });
    expect(rows()).toBe(2);
    await alerts.settleDelivery({ id: third?.id ?? 0, atUs: atUs + weekUs + 1, ...givenUp });
    expect(rows()).toBe(1);
  });

  it('answers questions without a writer, and while another program holds the lock', async () => {
    const { store, dataDir } = await openSqliteStore();
    await settle(store.alerts, [finding()]);
    await store.close();
    const reader = openStoreReader(dataDir);
    onTestFinished(() => reader.close());
    openFile(dataDir).exec('BEGIN IMMEDIATE; DELETE FROM alert; DELETE FROM alert_delivery');
    expect(await reader.alerts.alerts({ all: false, limit: 9 })).toHaveLength(1);
    expect(await reader.alerts.alerts({ all: true, limit: 9 })).toHaveLength(1);
    expect(await reader.alerts.dueDeliveries({ nowUs: atUs, limit: 9 })).toHaveLength(2);
    expect(await reader.alerts.untold(atUs)).toHaveLength(2);
  });
});
