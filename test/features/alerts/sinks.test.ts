/** Alerts of sinks: backlogs, dead letters, and sinks without deliveries. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { DeliveryState, SinkItem } from '../../../src/features/sinks/terms.ts';
import { beginUs, dayUs, minuteUs, openContext } from './watch-context.ts';

/** A watchdog with a sink `bus`; `queue` queues notifications for it. */
async function openSinks(deliveryState: DeliveryState = { names: ['bus'], fault: null }) {
  const opened = await openContext({ deliveryState: () => deliveryState });
  const { store, checkAt } = opened;
  const queue = (upTo: number, productIds: readonly string[], sink = 'bus', after = 0) => {
    const items = productIds.map((productId, i) => ({ position: after + i + 1, productId }));
    const from = { sink, replayId: null, after, upTo };
    return store.sinks.enqueue({ ...from, items, atUs: beginUs });
  };
  const due = () => store.sinks.due({ sink: 'bus', nowUs: beginUs + dayUs, limit: 9 });
  const settle = async (outcomeOf: (id: number) => Parameters<typeof store.sinks.settle>[0][0]) =>
    store.sinks.settle(
      (await due()).map(({ id }: SinkItem) => outcomeOf(id)),
      beginUs,
    );
  const at = async (minutes: number) => {
    const alerts = await checkAt(beginUs + minutes * minuteUs);
    return alerts.map(({ kind, subject, level }) => `${kind} ${subject} ${level}`);
  };
  return { ...opened, queue, settle, at };
}

const refused = (id: number) =>
  ({ id, outcome: 'dead', error: 'It answered 400: [x](https://evil.example)' }) as const;

it('a sink that does not acknowledge new items is an alert after 15 minutes, critical after six hours, resolved when they are acknowledged', async () => {
  const { queue, settle, at } = await openSinks();
  await queue(4, ['product-1', 'product-2']);
  expect(await at(14)).toEqual([]);
  expect(await at(15)).toEqual(['sink bus warning']);
  expect(await at(361)).toEqual(['sink bus critical']);
  await settle((id) => ({ id, outcome: 'acknowledged' }));
  expect(await at(362)).toEqual([]);
});

it('dead letters are an alert of their own, raised once, with their number and a text without links', async () => {
  const { queue, settle, at, activeAlerts, store } = await openSinks();
  await queue(3, ['product-1']);
  await settle(refused);
  expect(await at(1)).toEqual(['sink-refused bus warning']);
  const [alert] = await activeAlerts();
  expect(alert).toMatchObject({
    text: 'The sink bus has refused 1 notification permanently.',
    evidence: ['Last error: It answered 400: (x)(https : //evil.example)'],
    nextStep: expect.stringContaining('`earshot sinks retry bus`'),
  });
  // The sink is also stuck: neither alert hides the other.
  await queue(4, ['product-4'], 'bus', 3);
  expect((await at(16)).sort()).toEqual(['sink bus warning', 'sink-refused bus warning']);
  await settle(refused);
  expect(await at(17)).toEqual(['sink-refused bus warning']);
  expect((await activeAlerts())[0]?.text).toContain('has refused 2 notifications');
  // The next success of another notification does not remove the reason.
  await queue(5, ['product-5'], 'bus', 4);
  await settle((id) => ({ id, outcome: 'acknowledged' }));
  expect(await at(17)).toEqual(['sink-refused bus warning']);
  expect((await activeAlerts())[0]?.evidence).toEqual(alert?.evidence);
  await store.sinks.drop({ sink: 'bus', state: 'dead' });
  expect(await at(18)).toEqual([]);
  expect(await store.alerts.alerts({ all: true, limit: 9 })).toHaveLength(2);
});

it('a sink that is no longer configured is an alert while items wait for it, with the command that drops them', async () => {
  const { at, queue, activeAlerts, store } = await openSinks({ names: [], fault: null });
  await queue(1, ['product-1']);
  expect(await at(0)).toEqual(['sink bus warning']);
  expect((await activeAlerts())[0]).toMatchObject({
    text: 'The sink bus is no longer configured, and 1 notification waits for it.',
    nextStep: expect.stringContaining('`earshot sinks drop bus --waiting`'),
  });
  expect(await at(24 * 60)).toEqual(['sink bus warning']);
  await store.sinks.drop({ sink: 'bus', state: 'waiting' });
  expect(await at(25 * 60)).toEqual([]);
});

const reason =
  'sinks.bus.secretFile: /etc/earshot/gone cannot be read: there is no such file (ENOENT).';

it('a faulty sink is an alert at once, grows critical, does not hide its dead letters, and is resolved when fixed', async () => {
  const deliveryState: DeliveryState = {
    names: ['act', 'bus'],
    faults: new Map([['bus', reason]]),
    fault: null,
  };
  const { queue, settle, at, activeAlerts } = await openSinks(deliveryState);
  await queue(4, [], 'act');
  await queue(4, ['product-1']);
  await settle(refused);
  expect((await at(1)).toSorted()).toEqual(['sink bus warning', 'sink-refused bus warning']);
  const alert = (await activeAlerts()).find(({ kind }) => kind === 'sink');
  expect(alert?.text).toBe('Nothing is delivered to the sink bus.');
  expect(alert?.evidence[0]).toBe(reason);
  expect(await at(1 + 361)).toContain('sink bus critical');
  deliveryState.faults = new Map();
  expect(await at(363)).toEqual(['sink-refused bus warning']);
});

it('an invalid earshot.config.ts is an alert with its reason, until it is fixed', async () => {
  const state = { names: ['act'], fault: null };
  const { check, workingDir } = await openContext({ deliveryState: () => state });
  const write = (sinks: string) =>
    writeFileSync(join(workingDir, 'earshot.config.ts'), `export default { sinks: ${sinks} };\n`);
  write("'none'");
  const text = expect.stringContaining('earshot.config.ts is invalid');
  expect(await check()).toMatchObject([
    { kind: 'config', subject: '', text, evidence: [expect.stringContaining('sinks: must be')] },
  ]);
  write('{}');
  expect(await check()).toEqual([]);
});
