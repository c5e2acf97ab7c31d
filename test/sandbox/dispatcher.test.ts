/** Waits for deliveries of the sandbox's dispatcher, and their failures. */
import { expect, it, onTestFinished } from 'vitest';
import type { PushSubscription } from '../../src/sandbox/account.ts';
import { createSandboxClock } from '../../src/sandbox/clock.ts';
import { createDispatcher, type DispatcherOptions } from '../../src/sandbox/delivery/dispatcher.ts';
import { createDeliveryRecord } from '../../src/sandbox/delivery/notification.ts';
import { createProductGenerator } from '../../src/sandbox/products/product-generator.ts';
import { noFaults } from '../../src/sandbox/settings.ts';
import { startMs, unknownId } from './set-up.ts';

/** Opens a dispatcher with a stopped clock, whose only attempt of each notification fails without a connection. */
function openDispatcher(outOfOrder: number, options: Partial<DispatcherOptions> = {}) {
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const clock = createSandboxClock({ now: () => startMs });
  const faults = { ...noFaults, lost: 1, outOfOrder };
  const dispatcher = createDispatcher({
    ...{ record: createDeliveryRecord(), clock, seed: 1, signal: stopping.signal },
    faults: { current: () => faults, change: () => faults },
    ...{ trustedCaPems: [], retryDelaysMs: [], onDelivered: () => undefined },
    ...options,
  });
  const address = { endpoint: 'https://localhost:1/', username: null, password: null };
  const subscription: PushSubscription = {
    ...{ id: unknownId, events: ['created'], filter: '', matches: () => true, address },
    ...{ submittedMs: startMs, status: 'running', resumedMs: startMs, lastNotificationMs: null },
  };
  const product = createProductGenerator({ seed: 1 }).next(startMs);
  const send = () => dispatcher.send(subscription, 'created', product, startMs);
  return { dispatcher, clock, send };
}

it('a wait for capacity costs the same with any number of open notifications', async () => {
  const { dispatcher, clock, send } = openDispatcher(1);
  for (let sent = 0; sent < 100; sent += 1) send();
  const { then } = Promise.prototype;
  let reactions = 0;
  // Reflect: the spies of Vitest call `then` of the result themselves.
  Reflect.set(Promise.prototype, 'then', function count(this: unknown, ...args: unknown[]) {
    reactions += 1;
    return Reflect.apply(then, this, args);
  });
  const waits = [dispatcher.capacity(100), dispatcher.capacity(100)];
  Reflect.set(Promise.prototype, 'then', then);
  expect(reactions).toBeLessThan(10);
  clock.advance(1_000);
  await Promise.all([...waits, dispatcher.drained()]);
});

it('a failure in a callback is reported by each wait', async () => {
  const onSettled = () => {
    throw new Error('The output is closed.');
  };
  const { dispatcher, send } = openDispatcher(0, { onSettled });
  send();
  for (const wait of [dispatcher.quiet, dispatcher.drained, () => dispatcher.capacity(1)]) {
    await expect(wait()).rejects.toThrow('The output is closed.');
  }
});
