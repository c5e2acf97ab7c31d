import { describe, expect, it } from 'vitest';
import { alertLevels } from '../../../src/core/terms/ports.ts';
import type { AlertQuery, Alerts } from '../../../src/features/alerts/terms.ts';
import { alertKinds } from '../../helpers/status.ts';
import { openLocalStore } from '../../store/local-store.ts';
import { finding, settle } from './alert-findings.ts';

const atUs = 1_795_000_000_000_001;

/** Alerts that the channel has not accepted. */
const unsent = async (alerts: Alerts, resolvedSinceUs = atUs) =>
  (await alerts.unsent({ channel: 'url', resolvedSinceUs, limit: 9 })).map(({ id }) => id);

const openAlerts = async () => (await openLocalStore()).store.alerts;

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
    const channels = (['url', 'command'] as const).map((channel) => ({
      ...{ channel, sent: null, error: null },
    }));
    const listed = raised.toReversed().map((one) => ({ ...one, channels }));
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

  it('are unsent when they are raised, critical or resolved, until a channel has accepted this', async () => {
    const alerts = await openAlerts();
    const critical = finding({ level: 'critical' });
    const states = [
      [finding(), 'warning'],
      [critical, 'critical'],
      [undefined, 'resolved'],
    ] as const;
    for (const [one, sent] of states) {
      const changed = await settle(alerts, one === undefined ? [] : [one]);
      expect([...changed.raised, ...changed.resolved]).toHaveLength(1);
      await alerts.recordAttempt({ id: 1, channel: 'url', error: 'It answered 500.' });
      expect(await unsent(alerts)).toEqual([1]);
      await alerts.recordAttempt({ id: 1, channel: 'url', sent });
      expect(await unsent(alerts)).toEqual([]);
      // A lower level is not sent.
      if (one === undefined) continue;
      expect(await settle(alerts, [finding()])).toEqual({ raised: [], resolved: [] });
      expect(await unsent(alerts)).toEqual([]);
    }
    const [{ channels } = expect.fail()] = await alerts.alerts({ all: true, limit: 9 });
    expect(channels).toEqual([
      { channel: 'url', sent: 'resolved', error: null },
      { channel: 'command', sent: null, error: null },
    ]);
  });

  it('are unsent again when they become critical again', async () => {
    const alerts = await openAlerts();
    const levels = ['critical', 'warning', 'critical', 'warning', 'critical'] as const;
    const repeats: unknown[] = [];
    for (const level of levels) {
      await settle(alerts, [finding({ level })]);
      const [one] = await alerts.unsent({ channel: 'url', resolvedSinceUs: atUs, limit: 9 });
      if (one === undefined) continue;
      repeats.push(one.channels.find(({ channel }) => channel === 'url')?.repeats);
      await alerts.recordAttempt({ id: 1, channel: 'url', sent: 'critical' });
    }
    expect(repeats).toEqual([undefined, 1, 2]);
  });

  it('are sent to a channel that is added later, and not when resolved too long ago', async () => {
    const alerts = await openAlerts();
    await settle(alerts, [finding()], { channels: [] });
    expect(await unsent(alerts)).toEqual([]);
    await settle(alerts, [finding()], { channels: ['url', 'url'] });
    expect(await unsent(alerts)).toEqual([1]);
    await settle(alerts, []);
    expect(await unsent(alerts)).toEqual([1]);
    expect(await unsent(alerts, atUs + 1)).toEqual([]);
    await alerts.recordAttempt({ id: 999, channel: 'url', error: 'no such alert' });
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
