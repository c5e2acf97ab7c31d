/** Recorded deliveries, with the subscription name and the user name of each. */

import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startListener } from '../../src/core/http/listener.ts';
import type { Intake } from '../../src/core/terms/ports.ts';
import { createReceiverApp } from '../../src/receiver/app.ts';
import { createCredentialCheck } from '../../src/receiver/basic-auth.ts';
import { silentLog } from '../helpers/recording-log.ts';
import { openStore } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { basic, exchange, goodNotification } from './raw-client.ts';
import { goodPair, startReceiver } from './running-receiver.ts';

const otherPair = { username: 'catalogue-2', password: 'open barley' };
const pairs = [goodPair, otherPair];
const other = basic(otherPair.username, otherPair.password);

/** The receiver's app over this intake, with the deliveries it reported. */
async function startApp(intake: Intake) {
  const delivered: [string | null, string][] = [];
  const app = createReceiverApp({
    ...{ intake, checkCredentials: createCredentialCheck(pairs), log: silentLog, nowUs: () => 0 },
    newRequestId: randomUUID,
    onDelivered: (...delivery) => delivered.push(delivery),
  });
  const listen = { host: '127.0.0.1', port: 0 };
  const listener = await startListener({ fetch: app.fetch, listen, listenVariable: 'X' });
  onTestFinished(() => listener.close(0));
  const post = async (path: string, body: string, authorization = basic()) => {
    const sent = { method: 'POST', body, headers: { Authorization: authorization } };
    return (await fetch(`http://127.0.0.1:${listener.address.port}${path}`, sent)).status;
  };
  return { delivered, post };
}

async function startWithStore() {
  const store = await openStore({ dataDir: temporaryDirectory() });
  onTestFinished(() => store.close());
  return startApp(store);
}

it('a delivery is reported with the name in its path and its user name, also a duplicate', async () => {
  const { delivered, post } = await startWithStore();
  const { body } = goodNotification();
  expect(await post('/notifications/alps', body)).toBe(200);
  expect(await post('/notifications', goodNotification().body, other)).toBe(200);
  expect(await post('/notifications/alps/', body, other)).toBe(200);
  const { username } = otherPair;
  expect(delivered).toEqual([
    ['alps', goodPair.username],
    [null, username],
    ['alps', username],
  ]);
});

it('the latest time of each delivery is stored while the receiver runs', async () => {
  const receiver = await startReceiver(pairs);
  const beginUs = receiver.clock.us;
  const push = (authorization = basic()) =>
    exchange(receiver, { path: '/notifications/alps', authorization, ...goodNotification() });
  await push();
  await push(other);
  receiver.clock.us += 7;
  await push();
  const mark = { subscription: 'alps', username: goodPair.username, lastAtUs: beginUs + 7 };
  const marks = [mark, { ...mark, username: otherPair.username, lastAtUs: beginUs }];
  await vi.waitFor(
    async () => {
      const stored = await receiver.store.administration.deliveryMarks();
      expect(stored.toSorted((a, b) => (a.username < b.username ? -1 : 1))).toEqual(marks);
    },
    { timeout: 10_000 },
  );
});
