/** A sink that is faulty beside sound ones: an alert of its own, with its reason. */
import { expect, it } from 'vitest';
import type { HandingOver } from '../../src/watch/situation.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import { beginUs, minuteUs, openWorld } from './watch-world.ts';

const reason = 'sinks.bus.secretFile: /etc/earshot/gone cannot be read (ENOENT).';

it('is told at once under its name, grows critical, hides its dead letters not, and is over when it is sound', async () => {
  const handingOver: HandingOver = {
    names: ['act', 'bus'],
    faults: new Map([['bus', reason]]),
    fault: null,
  };
  const { store, setNow, look, lasting } = await openWorld({ handingOver: () => handingOver });
  const at = async (minutes: number) => {
    setNow(beginUs + minutes * minuteUs);
    await look();
    return (await lasting()).map(({ kind, subject, severity }) => `${kind} ${subject} ${severity}`);
  };
  await store.accept(delivery(notification(1), { receivedAtUs: beginUs }));
  for (const sink of ['act', 'bus']) {
    const items = sink === 'bus' ? [{ position: 1, productId: 'product-1' }] : [];
    const from = { sink, replayId: null, after: 0, upTo: 1 };
    await store.sinks.enqueue({ ...from, items, atUs: beginUs });
  }
  const [item] = await store.sinks.due({ sink: 'bus', nowUs: beginUs, limit: 1 });
  await store.sinks.settle([{ id: item?.id ?? 0, outcome: 'dead', error: 'no' }]);
  expect((await at(1)).toSorted()).toEqual(['sink bus warning', 'sink-refused bus warning']);
  const alert = (await lasting()).find(({ kind }) => kind === 'sink');
  expect(alert?.cause).toBe('Nothing is delivered to the sink bus.');
  expect(alert?.evidence[0]).toBe(reason);
  expect(await at(1 + 361)).toContain('sink bus critical');
  handingOver.faults = new Map();
  expect(await at(363)).toEqual(['sink-refused bus warning']);
});

it('a changed file that is rejected is an alert with its reason, until it is fixed', async () => {
  const handingOver: HandingOver = { names: ['act'], fault: null, rejected: reason };
  const { look, lasting } = await openWorld({ handingOver: () => handingOver });
  await look();
  expect(await lasting()).toMatchObject([
    {
      kind: 'sink',
      subject: '',
      cause: 'The current earshot.config.ts is rejected.',
      evidence: [reason, expect.stringContaining('continues with the last valid version')],
    },
  ]);
  handingOver.rejected = null;
  await look();
  expect(await lasting()).toEqual([]);
});
