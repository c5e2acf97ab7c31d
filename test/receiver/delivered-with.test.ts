/** Recorded deliveries, with the subscription name and the user name of each. */

import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { DeliveryMark } from '../../src/admin/account.ts';
import { app } from '../../src/app.ts';
import { startListener } from '../../src/core/http/listener.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
import type { Intake } from '../../src/core/terms/ports.ts';
import { createReceiverApp } from '../../src/receiver/app.ts';
import { createCredentialCheck } from '../../src/receiver/basic-auth.ts';
import { serve } from '../../src/receiver/serve.ts';
import { openStore, openStoreReader } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { basic, goodNotification } from './raw-client.ts';
import { goodPair } from './running-receiver.ts';

const otherPair = { username: 'catalogue-2', password: 'open barley' };
const pairs = [goodPair, otherPair];
const other = basic(otherPair.username, otherPair.password);
const nowUs = 1_777_000_000_000_000;

const silent = () => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent };

function clientOf(url: string) {
  return async (path: string, body: string, authorization = basic()) =>
    (
      await fetch(`${url}${path}`, {
        method: 'POST',
        body,
        headers: { Authorization: authorization },
      })
    ).status;
}

/** The receiver's app before any intake, with the deliveries it reported. */
async function startApp(intake: Intake) {
  const delivered: [string | null, string][] = [];
  const app = createReceiverApp({
    intake,
    checkCredentials: createCredentialCheck(pairs),
    log,
    nowUs: () => nowUs,
    newRequestId: randomUUID,
    onDelivered: (...delivery) => delivered.push(delivery),
  });
  const listen = { host: '127.0.0.1', port: 0 };
  const listener = await startListener({
    fetch: app.fetch,
    listen,
    listenVariable: 'EARSHOT_LISTEN',
    keyPair: undefined,
  });
  onTestFinished(() => listener.close(0));
  return { delivered, post: clientOf(`http://127.0.0.1:${listener.address.port}`) };
}

async function startWithStore() {
  const store = await openStore({ dataDir: temporaryDirectory(), nowUs: () => nowUs });
  onTestFinished(() => store.close());
  return startApp(store);
}

/** Starts the complete receiver over plain HTTP; its data directory is kept when it is closed. */
async function startServing() {
  const dataDir = temporaryDirectory();
  const clock = { us: nowUs };
  const config = {
    listen: { host: '127.0.0.1', port: 0 },
    publicUrl: undefined,
    dataDir,
    credentials: { source: 'variables' as const, pairs },
    diskReserveBytes: undefined,
    sharedLog: null,
    tls: { kind: 'off' as const },
    trustedProxies: [],
    console: null,
    index: false,
    logLevel: 'info' as const,
  };
  const receiver = await serve(config, log, {
    nowUs: () => clock.us,
    newId: randomUUID,
    features: app,
    random: Math.random,
  });
  onTestFinished(() => receiver.close());
  const { store, close, url } = receiver;
  return { dataDir, clock, post: clientOf(url ?? ''), administration: store.administration, close };
}

function sorted(marks: readonly DeliveryMark[]): DeliveryMark[] {
  return marks.toSorted((a, b) => (a.username < b.username ? -1 : 1));
}

describe('a delivery', () => {
  it('is reported with the name in its path and its user name', async () => {
    const { delivered, post } = await startWithStore();
    const { body } = goodNotification();
    expect(await post('/notifications/alps', body)).toBe(200);
    expect(await post('/notifications/sea', goodNotification().body, other)).toBe(200);
    expect(await post('/notifications', goodNotification().body, other)).toBe(200);
    // A duplicate also proves that the catalogue delivers, and with which pair.
    expect(await post('/notifications/alps/', body, other)).toBe(200);
    expect(delivered).toEqual([
      ['alps', goodPair.username],
      ['sea', otherPair.username],
      [null, otherPair.username],
      ['alps', otherPair.username],
    ]);
  });

  it('is not reported when it was refused, for any reason', async () => {
    const { delivered, post } = await startWithStore();
    const { body } = goodNotification();
    expect(await post('/notifications/alps', '{')).toBe(400);
    expect(await post('/notifications/alps', `[${body}, {}]`)).toBe(400);
    expect(await post('/notifications/alps', body, basic('catalogue', 'wrong'))).toBe(401);
    expect(await post('/notifications/alps', body, basic(goodPair.username, 'open barley'))).toBe(
      401,
    );
    expect(await post('/notifications/Alps', body)).toBe(404);
    expect(await post('/elsewhere', body)).toBe(404);
    expect(await post('/notifications/alps', ' '.repeat(2 ** 20 + 1))).toBe(413);
    expect(delivered).toEqual([]);
  });

  it.each([
    ['cannot commit', new AppError('unavailable', 'The disk is full.'), 503],
    ['has an internal error', new TypeError('x'), 500],
  ])('is not reported when the store %s', async (_title, error, status) => {
    const fail = () => Promise.reject(error);
    const { delivered, post } = await startApp({ accept: fail, checkWritable: fail });
    expect(await post('/notifications/alps', goodNotification().body)).toBe(status);
    expect(delivered).toEqual([]);
  });

  it('is reported after its commit, not before', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const { delivered, post } = await startApp({
      accept: async () => {
        arrived.resolve();
        await promise;
        return { outcome: 'stored', stored: 1, duplicates: 0 };
      },
      checkWritable: () => Promise.resolve(),
    });
    const answered = post('/notifications/alps', goodNotification().body);
    await arrived.promise;
    expect(delivered).toEqual([]);
    resolve();
    expect(await answered).toBe(200);
    expect(delivered).toEqual([['alps', goodPair.username]]);
  });
});

describe('the times of deliveries', () => {
  it('are stored while the receiver runs, the latest time of each', async () => {
    const { clock, post, administration } = await startServing();
    await post('/notifications/alps', goodNotification().body);
    await post('/notifications/alps', goodNotification().body, other);
    clock.us += 7;
    await post('/notifications/alps', goodNotification().body);
    const marks = [
      { subscription: 'alps', username: goodPair.username, lastAtUs: nowUs + 7 },
      { subscription: 'alps', username: otherPair.username, lastAtUs: nowUs },
    ];
    await vi.waitFor(
      async () => expect(sorted(await administration.deliveryMarks())).toEqual(marks),
      {
        timeout: 10_000,
      },
    );
  });

  it('are stored when the receiver has closed', async () => {
    const { dataDir, post, close } = await startServing();
    await post('/notifications', goodNotification().body);
    await close();
    const reader = openStoreReader(dataDir);
    onTestFinished(() => reader.close());
    expect(await reader.administration.deliveryMarks()).toEqual([
      { subscription: null, username: goodPair.username, lastAtUs: nowUs },
    ]);
  });
});
