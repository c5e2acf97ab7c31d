import { describe, expect, it } from 'vitest';
import { type AlertChannel, alertLevels } from '../../../src/core/terms/ports.ts';
import {
  type AlertQuery,
  type Alerts,
  alertWaitMaxUs,
} from '../../../src/features/alerts/terms.ts';
import { alertKinds } from '../../helpers/status.ts';
import { openLocalStore } from '../../store/local-store.ts';
import { finding, settle } from './alert-findings.ts';

/** Due deliveries of both channels. */
async function dueOf(alerts: Alerts, { nowUs, limit }: { nowUs: number; limit: number }) {
  const of = (channel: AlertChannel) => alerts.dueDeliveries({ nowUs, limit, channel });
  const all = [...(await of('url')), ...(await of('command'))];
  return all.toSorted((one, other) => one.id - other.id).slice(0, limit);
}

const atUs = 1_795_000_000_000_001;
const weekUs = 7 * 86_400_000_000;

/** Short descriptions of the notifications that are due. */
async function dueNow(alerts: Alerts, nowUs = atUs, limit = 99): Promise<string[]> {
  const due = await dueOf(alerts, { nowUs, limit });
  return due.map(({ alert, change, channel }) => `${change} ${alert.subject} ${channel}`);
}

const openAlerts = async () => (await openLocalStore()).store.alerts;

async function sendAll(alerts: Alerts): Promise<void> {
  for (const { id } of await dueOf(alerts, { nowUs: atUs, limit: 99 })) {
    await alerts.settleDelivery({ id, atUs, outcome: 'sent' });
  }
}

describe('stored alerts', () => {
  it('keep every kind and field over a restart, newest first', async () => {
    const { store, reopen } = await openLocalStore();
    const findings = alertKinds.flatMap((kind) =>
      alertLevels.map((level) => finding({ kind, subject: level, level })),
    );
    const { raised } = await settle(store.alerts, findings);
    const began = { id: expect.any(Number), raisedAtUs: atUs, resolvedAtUs: null };
    expect(raised).toEqual(findings.map((one) => ({ ...one, ...began })));
    const { alerts } = await reopen();
    const listed = raised.toReversed().map((one) => ({ ...one, channels: ['url', 'command'] }));
    expect(await alerts.alerts({ all: false, limit: 99 })).toEqual(listed);
    expect(await alerts.alerts({ all: true, limit: 2 })).toEqual(listed.slice(0, 2));
  });

  it('are raised once, resolved once, and raised again as new alerts', async () => {
    const alerts = await openAlerts();
    const [first] = (await settle(alerts, [finding()])).raised;
    for (const _ of [1, 2]) {
      expect(await settle(alerts, [finding()])).toEqual({ raised: [], resolved: [] });
    }
    const resolved = [{ ...first, resolvedAtUs: atUs + 5 }];
    expect(await settle(alerts, [], { atUs: atUs + 5 })).toEqual({ raised: [], resolved });
    expect(await settle(alerts, [])).toEqual({ raised: [], resolved: [] });
    const [second] = (await settle(alerts, [finding()], { atUs: atUs + 9 })).raised;
    expect(await alerts.alerts({ all: true, limit: 9 })).toMatchObject([second, ...resolved]);
    expect(await alerts.alerts({ all: false, limit: 9 })).toMatchObject([{ ...second }]);
  });

  it('take the newest text of an active alert and keep its first time', async () => {
    const alerts = await openAlerts();
    const [{ id } = { id: 0 }] = (await settle(alerts, [finding()])).raised;
    const newer = finding({ text: 'Still nothing.', evidence: [], nextStep: 'Wait.' });
    await settle(alerts, [finding({ text: 'Lost.' }), newer], { atUs: atUs + 5 });
    const lasting = [{ ...newer, id, raisedAtUs: atUs, resolvedAtUs: null }];
    expect(await alerts.alerts({ all: true, limit: 9 })).toMatchObject(lasting);
    expect((await dueOf(alerts, { nowUs: atUs, limit: 9 }))[0]?.alert).toEqual(lasting[0]);
  });

  it('are listed by the time in which they were active, and page by page', async () => {
    const alerts = await openAlerts();
    await settle(alerts, [finding()]);
    await settle(alerts, [], { atUs: atUs + 10 });
    await settle(alerts, [finding()], { atUs: atUs + 20 });
    const ids = async (query: Partial<AlertQuery>) =>
      (await alerts.alerts({ all: true, limit: 9, ...query })).map(({ id }) => id);
    expect(await ids({})).toEqual([2, 1]);
    expect(await ids({ sinceUs: atUs + 10, untilUs: atUs + 20 })).toEqual([1]);
    expect(await ids({ sinceUs: atUs + 11, untilUs: atUs + 20 })).toEqual([]);
    expect(await ids({ sinceUs: atUs + 30 })).toEqual([2]);
    expect(await ids({ beforeId: 2 })).toEqual([1]);
    expect(await ids({ resolved: true })).toEqual([1]);
    expect(await ids({ all: false, untilUs: atUs + 20 })).toEqual([]);
  });

  it('notify again when an alert becomes critical, and not otherwise', async () => {
    const alerts = await openAlerts();
    const critical = finding({ level: 'critical' });
    await settle(alerts, [finding()]);
    await sendAll(alerts);
    expect((await settle(alerts, [critical])).raised).toMatchObject([critical]);
    expect(await dueNow(alerts)).toEqual(['raised alps url', 'raised alps command']);
    await sendAll(alerts);
    for (const again of [critical, finding()]) {
      expect(await settle(alerts, [again])).toEqual({ raised: [], resolved: [] });
    }
    expect(await dueNow(alerts)).toEqual([]);
    expect(await alerts.alerts({ all: true, limit: 9 })).toMatchObject([finding()]);
  });

  it('are resolved only when checked, and never before they were raised', async () => {
    const alerts = await openAlerts();
    const others = [finding({ subject: 'andes' }), finding({ kind: 'disk', subject: '' })];
    await settle(alerts, [finding(), ...others]);
    const { resolved } = await settle(alerts, [], { atUs: atUs - 50 });
    expect(resolved).toMatchObject([{ subject: 'alps', raisedAtUs: atUs, resolvedAtUs: atUs }]);
    const lasting = await alerts.alerts({ all: false, limit: 9 });
    expect(lasting).toMatchObject(others.toReversed());
  });
});

describe('due alert notifications', () => {
  it('are returned oldest first, once per channel, with all fields', async () => {
    const { store, reopen } = await openLocalStore();
    const channels = ['url', 'command', 'url'] as const;
    const { raised } = await settle(store.alerts, [finding()], { channels });
    const checked = [finding({ subject: 'andes' })];
    await settle(store.alerts, checked, { checked, channels: ['url'] });
    const { alerts } = await reopen();
    const due = await dueOf(alerts, { nowUs: atUs, limit: 99 });
    const fresh = { change: 'raised', attempts: 0, dueAtUs: atUs, error: null, isGivenUp: false };
    const id = expect.any(Number);
    expect(due.slice(0, 2)).toEqual([
      { ...fresh, id, alert: raised[0], channel: 'url' },
      { ...fresh, id, alert: raised[0], channel: 'command' },
    ]);
    const expected = ['raised alps url', 'raised alps command', 'raised andes url'];
    expect(await dueNow(alerts)).toEqual(expected);
    expect(await dueNow(alerts, atUs, 2)).toEqual(expected.slice(0, 2));
    expect(await dueNow(alerts, atUs - 1)).toEqual([]);
  });

  it('report each change of an alert in order, separately for each channel', async () => {
    const alerts = await openAlerts();
    for (const findings of [[finding()], [], [finding()]]) await settle(alerts, findings);
    const [url = expect.fail(), command] = await dueOf(alerts, { nowUs: atUs, limit: 9 });
    expect(await dueNow(alerts)).toEqual(['raised alps url', 'raised alps command']);
    const error = 'It answered 500.';
    const later = { outcome: 'failed', error, nextAttemptAtUs: atUs + 9 } as const;
    await alerts.settleDelivery({ id: url.id, atUs, ...later });
    await alerts.settleDelivery({ id: command?.id ?? 0, atUs, outcome: 'sent' });
    expect(await dueNow(alerts)).toEqual(['resolved alps command']);
    expect(await dueNow(alerts, atUs + 9)).toEqual(['raised alps url', 'resolved alps command']);
    const [again] = await dueOf(alerts, { nowUs: atUs + 9, limit: 1 });
    expect(again).toMatchObject({ id: url.id, attempts: 1, error, alert: { resolvedAtUs: atUs } });
    await alerts.settleDelivery({ id: url.id, atUs, outcome: 'given-up', error });
    expect(await dueNow(alerts)).toEqual(['resolved alps url', 'resolved alps command']);
    await sendAll(alerts);
    expect(await dueNow(alerts)).toEqual(['raised alps url', 'raised alps command']);
  });

  it('list pending deliveries, and abandoned ones for a week', async () => {
    const alerts = await openAlerts();
    await settle(alerts, [finding()]);
    const [url, command] = await alerts.unsentDeliveries(atUs);
    expect([url, command]).toMatchObject([{ isGivenUp: false }, { isGivenUp: false }]);
    const refused = { outcome: 'given-up', error: 'It answered 404.' } as const;
    await alerts.settleDelivery({ id: url?.id ?? 0, atUs, ...refused });
    const givenUp = { ...url, attempts: 1, error: refused.error, isGivenUp: true };
    expect(await alerts.unsentDeliveries(atUs + weekUs)).toEqual([givenUp, command]);
    expect(await alerts.unsentDeliveries(atUs + weekUs + 1)).toEqual([command]);
    await alerts.settleDelivery({ id: command?.id ?? 0, atUs, outcome: 'sent' });
    expect(await alerts.unsentDeliveries(atUs)).toEqual([givenUp]);
    // Resolved alerts stay unchanged.
    for (const id of [url?.id ?? 0, command?.id ?? 0, 999]) {
      const late = { id, atUs, outcome: 'failed', error: 'Late.', nextAttemptAtUs: atUs } as const;
      await alerts.settleDelivery(late);
      await alerts.settleDelivery({ id, atUs, outcome: 'sent' });
    }
    expect(await alerts.unsentDeliveries(atUs)).toEqual([givenUp]);
    expect(await dueNow(alerts)).toEqual([]);
  });

  it('do not wait for a time that a fast clock has set', async () => {
    const alerts = await openAlerts();
    await settle(alerts, [finding()], { channels: ['url'], atUs: atUs + alertWaitMaxUs });
    expect(await dueNow(alerts)).toEqual([]);
    expect(await dueNow(alerts, atUs - 1)).toEqual(['raised alps url']);
  });
});
