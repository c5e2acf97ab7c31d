/** SIGKILL of a receiver that stores notifications and requests summaries: no loss, and few repeated requests. */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { numberedSample, recordOf } from '../features/products/product-samples.ts';
import { model, startInference } from '../features/summary/summary-context.ts';
import { collect, notification } from '../helpers/deliveries.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { openStore } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';
import { openReader } from '../store/sqlite-store.ts';

const kills = times(3, 16);
const sentPerRound = 20;

it(`writes one summary of each product over ${kills} kills at random moments`, async () => {
  const context = await createReceiverContext(temporaryDirectory());
  const { dataDir } = context;
  const store = await openStore({ dataDir, nowUs: () => Date.now() * 1000 });
  await store.moveCursor('summaries', 0, 0);
  await store.close();
  const { inference, env } = await startInference({ answerDelayMs: 100 });
  const start = () => context.start({ ...env, EARSHOT_SUMMARY: 'each' });
  const random = createRandom(20_261_121);
  const answered = new Set<string>();
  let next = 0;
  let inFlight = 0;

  for (let round = 0; round < kills; round += 1) {
    const { child, port } = await start();
    const post = createClient({ port, ca: context.ca, connections: 4 });
    const send = async () => {
      next += 1;
      const sample = numberedSample(next);
      const { id: ProductId, name: ProductName } = sample;
      const fields = { ProductId, ProductName, value: recordOf(sample) };
      const body = JSON.stringify(notification(next, fields));
      const { status } = await post('POST', '/notifications/kill', body);
      if (status === 200) answered.add(ProductId);
    };
    const sending = Promise.allSettled(Array.from({ length: sentPerRound }, send));
    const before = inference.totals().requests;
    const isAsked = () => inference.totals().requests > before;
    // Every second receiver is killed before the answer to its first request, the others at any moment.
    if (round % 2 === 0) await expect.poll(isAsked, { timeout: 15_000, interval: 5 }).toBe(true);
    // The random delay is the moment of the kill; the test waits for no condition here.
    await delay(round % 2 === 0 ? random.integer(0, 60) : random.integer(100, 1_500));
    inFlight += inference.totals().inFlight;
    child.kill('SIGKILL');
    await Promise.all([once(child, 'exit'), sending]);
  }

  const killed = inference.totals();
  expect(killed.requests).toBeGreaterThan(kills / 2);
  expect(inFlight).toBeGreaterThan(0);
  expect(answered.size).toBeGreaterThan(kills);
  inference.change({ answerDelayMs: 0 });
  const { child } = await start();
  const reader = openReader(dataDir);
  const left = async () => {
    const texts = await reader.summaries.textsOf([...answered]);
    return [...answered].filter((id) => texts.get(id)?.model !== model);
  };
  await expect.poll(left, { timeout: 60_000, interval: 500 }).toEqual([]);
  await expect.poll(() => reader.summaries.waiting()).toMatchObject({ waiting: 0 });
  child.kill('SIGTERM');
  await once(child, 'exit');

  const rows = await collect(reader.summaries.find({}));
  expect(new Set(rows.map(({ productId }) => productId)).size).toBe(rows.length);
  const { requests, distinct } = inference.totals();
  expect(distinct).toBe(rows.length);
  expect(requests - distinct).toBeLessThanOrEqual(kills);
  // A request is counted before it is sent, so that a crash cannot exceed the budget.
  const counted = (await reader.summaries.spending(Date.now() * 1000)).requests;
  expect(counted).toBeGreaterThanOrEqual(requests);
  expect(counted - requests).toBeLessThanOrEqual(kills);
}, 300_000);
