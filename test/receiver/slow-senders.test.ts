/** Senders that take for ever: they are cut off, and nobody waits for them. */
import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { expectStillTakesNotifications } from './good-notification.ts';
import { basic, openConnection, openTcp, requestBytes } from './raw-client.ts';
import { startReceiver, type TestReceiver } from './running-receiver.ts';

/** Well above the ten seconds that heads, handshakes and unwanted bodies may take. */
const boundMs = 15_000;

async function neverShakesHands(receiver: TestReceiver): Promise<void> {
  await once(await openTcp(receiver), 'close');
}

async function saysNothing(receiver: TestReceiver): Promise<void> {
  await (await openConnection(receiver)).closed;
}

async function dripsItsHead(receiver: TestReceiver): Promise<void> {
  const connection = await openConnection(receiver);
  connection.send('GET /notifications HTTP/1.1\r\nHost: h\r\nX: ');
  const drip = setInterval(() => connection.send('x'), 200);
  onTestFinished(() => clearInterval(drip));
  expect((await connection.answer()).status).toBe(408);
  await connection.closed;
}

async function dripsAnUnwantedBody(receiver: TestReceiver): Promise<void> {
  const connection = await openConnection(receiver);
  const headers = { 'Content-Length': '100000' };
  connection.send(requestBytes({ authorization: basic('x', 'y'), headers }));
  const drip = setInterval(() => connection.send('x'), 200);
  onTestFinished(() => clearInterval(drip));
  expect((await connection.answer()).status).toBe(401);
  await connection.closed;
}

it('are cut off within fifteen seconds, while notifications are taken as before', {
  timeout: boundMs + 5_000,
}, async () => {
  const receiver = await startReceiver();
  const attacks = [neverShakesHands, saysNothing, dripsItsHead, dripsAnUnwantedBody];
  const startMs = performance.now();
  let cut = 0;
  const all = attacks.map(async (attack) => {
    await attack(receiver);
    cut += 1;
  });
  await expectStillTakesNotifications(receiver);
  expect(cut).toBe(0);
  await Promise.all(all);
  expect(performance.now() - startMs).toBeLessThan(boundMs);
  await expectStillTakesNotifications(receiver);
  expect(receiver.log.filter(({ level }) => level === 'error')).toEqual([]);
});
