/** Recorded deliveries, with the subscription name and the user name of each. */

import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startListener } from '../../src/core/http/listener.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
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
  const store = await openStore({ dataDir: temporaryDirectory(), nowUs: () => 0 });
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

it('a delivery is not reported when it was refused, for any reason', async () => {
  const { delivered, post } = await startWithStore();
  const { body } = goodNotification();
  const mixed = basic(goodPair.username, otherPair.password);
  expect(await post('/notifications/alps', `[${body}, {}]`)).toBe(400);
  expect(await post('/notifications/alps', body, mixed)).toBe(401);
  expect(await post('/notifications/Alps', body)).toBe(404);
  expect(await post('/notifications/alps', ' '.repeat(2 ** 20 + 1))).toBe(413);
  expect(delivered).toEqual([]);
});

it('a delivery is reported after its commit, and not when the commit fails', async () => {
  const commit = Promise.withResolvers<void>();
  const accept = vi.fn(async () => {
    await commit.promise;
    return { outcome: 'stored', stored: 1, duplicates: 0 } as const;
  });
  const { delivered, post } = await startApp({ accept, checkWritable: async () => undefined });
  const answered = post('/notifications/alps', goodNotification().body);
  await vi.waitFor(() => expect(accept).toHaveBeenCalled());
  expect(delivered).toEqual([]);
  commit.resolve();
  expect(await answered).toBe(200);
  expect(delivered).toEqual([['alps', goodPair.username]]);
  const fail = () => Promise.reject(new AppError('unavailable', 'The disk is full.'));
  const full = await startApp({ accept: fail, checkWritable: fail });
  expect(await full.post('/notifications/alps', goodNotification().body)).toBe(503);
  expect(full.delivered).toEqual([]);
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
