/** SIGKILL of a receiver that stores notifications and requests summaries: no loss, and few repeated requests. */
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { expect, it } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { openStore } from '../../src/store/store.ts';
import { recordOf } from '../cli/product-samples.ts';
import { notification } from '../helpers/deliveries.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';
import { openSandbox, openWorker, productOf, secondUs } from '../summary/worker/set-up.ts';

const kills = times(3, 16);
const sentPerRound = 20;
/** Maximum number of requests of the worker that are in flight at a kill. */
const concurrency = 2;
const leaseUs = 150 * secondUs;

const environmentOf = (inferenceUrl: string) => ({
  EARSHOT_SUMMARY: 'each',
  EARSHOT_INFERENCE_URL: inferenceUrl,
  EARSHOT_INFERENCE_API_KEY: 'sandbox-key',
  EARSHOT_INFERENCE_MODEL: 'openai/gpt-oss-120b',
  EARSHOT_SUMMARY_REQUESTS_PER_HOUR: '100000',
  EARSHOT_SUMMARY_REQUESTS_PER_DAY: '100000',
  EARSHOT_SUMMARY_TOKENS_PER_DAY: '999999999',
});

it(`writes one summary of each product over ${kills} kills at random moments`, async () => {
  const context = await createReceiverContext(temporaryDirectory());
  const { dataDir } = context;
  const store = await openStore({ dataDir, nowUs: () => Date.now() * 1000 });
  await store.moveCursor('summaries', 0, 0);
  await store.close();
  const sandbox = await openSandbox();
  sandbox.inference.change({ answerDelayMs: 100 });
  const random = createRandom(20_261_121);
  const answered = new Set<string>();
  let next = 0;
  let inFlight = 0;

  for (let round = 0; round < kills; round += 1) {
    const { child, port } = await context.start(environmentOf(sandbox.inferenceUrl));
    const post = createClient({ port, ca: context.ca, connections: 4 });
    const send = async () => {
      next += 1;
      const sample = productOf(next);
      const { id: ProductId, name: ProductName } = sample;
      const fields = { ProductId, ProductName, value: recordOf(sample) };
      const body = JSON.stringify(notification(next, fields));
      const { status } = await post('POST', '/notifications/kill', body);
      if (status === 200) answered.add(ProductId);
    };
    const sending = Promise.allSettled(Array.from({ length: sentPerRound }, send));
    const before = sandbox.inference.totals().requests;
    const isAsked = () => sandbox.inference.totals().requests > before;
    // Every second receiver is killed before the answer to its first request, the others at any moment.
    if (round % 2 === 0) await expect.poll(isAsked, { timeout: 15_000, interval: 5 }).toBe(true);
    // The random delay is the moment of the kill; the test waits for no condition here.
    await delay(round % 2 === 0 ? random.integer(0, 60) : random.integer(100, 1_500));
    inFlight += sandbox.inference.totals().inFlight;
    child.kill('SIGKILL');
    await Promise.all([once(child, 'exit'), sending]);
  }

  const killed = sandbox.inference.totals();
  expect(killed.requests).toBeGreaterThan(kills / 2);
  expect(inFlight).toBeGreaterThan(0);
  expect(answered.size).toBeGreaterThan(kills);
  sandbox.inference.change({ answerDelayMs: 0 });
  const clock = { us: Date.now() * 1000 + leaseUs };
  const worker = await openWorker({ dataDir, clock, sandbox });
  await worker.collect(() => ({ kind: 'each', matches: null }));
  expect(await worker.work()).toEqual({ end: 'nothing due' });
  const rows = await worker.rows();
  const ids = rows.map(({ productId }) => productId);
  expect(new Set(ids).size).toBe(rows.length);
  expect([...answered].filter((id) => !ids.includes(id))).toEqual([]);
  for (const { state, text } of rows)
    expect([state, text?.model]).toEqual(['done', 'openai/gpt-oss-120b']);

  const { requests, distinct } = sandbox.inference.totals();
  expect(distinct).toBe(rows.length);
  expect(requests - distinct).toBeLessThanOrEqual(kills * concurrency);
  const database = new Sqlite(join(dataDir, databaseFileName));
  const count = (table: string) => database.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
  const [texts, claims] = [count('summary_text'), Number(count('summary_request'))];
  database.close();
  expect(texts).toBe(rows.length);
  // A request is counted before it is sent, so that a crash cannot exceed the budget.
  expect(claims).toBeGreaterThanOrEqual(requests);
  expect(claims - requests).toBeLessThanOrEqual(kills * concurrency);
}, 120_000);
