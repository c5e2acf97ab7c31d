/**
 * Sinks when the program stops: soon answers count; hanging deliveries are aborted and their items
 * stay queued.
 */
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { startHook } from './hook-server.ts';
import { openSinkContext } from './sink-context.ts';
import { definition } from './sink-definition.ts';
import { createVirtualTime } from './virtual-time.ts';

const secondUs = 1_000_000;

/** A webhook that received one notification and has not answered it. */
async function openContext() {
  const time = createVirtualTime();
  const responses: ServerResponse[] = [];
  const hook = await startHook({
    answer: (_hooked, response) => {
      responses.push(response);
      return 'hang';
    },
  });
  const context = await openSinkContext(time);
  const target = { kind: 'webhook', url: hook.url, secret: null, ca: null } as const;
  const start = () => context.start(definition(target, { timeoutMs: 3_600_000 }));
  await context.accept();
  const sinks = start();
  await time.runUntil(() => responses.length === 1);
  const stopAtUs = time.nowUs();
  let stoppedAfterUs: number | null = null;
  const stop = () =>
    sinks.stop().then(() => {
      stoppedAfterUs = time.nowUs() - stopAtUs;
    });
  const times = { stopAtUs, stoppedAfterUs: () => stoppedAfterUs };
  return { ...context, ...times, time, hook, responses, start, stop };
}

it('an answer within two seconds of the stop counts, and ends the wait', async () => {
  const { time, responses, stop, stopAtUs, stoppedAfterUs, isDone } = await openContext();
  const stopping = stop();
  await time.runUntil(() => time.nowUs() >= stopAtUs + 1.5 * secondUs);
  expect(stoppedAfterUs()).toBeNull();
  responses[0]?.writeHead(204).end();
  await stopping;
  expect(stoppedAfterUs()).toBe(1.5 * secondUs);
  expect(await isDone()).toBe(true);
});

it('a hanging delivery is aborted after two seconds, and repeated by the next program under its id', async () => {
  const { time, hook, start, stop, stoppedAfterUs, items, isDone } = await openContext();
  const stopping = stop();
  await time.runUntil(() => stoppedAfterUs() !== null);
  await stopping;
  expect(stoppedAfterUs()).toBeGreaterThanOrEqual(2 * secondUs);
  expect(stoppedAfterUs()).toBeLessThan(5 * secondUs);
  expect(await items('waiting')).toMatchObject([{ attempts: 0, error: null }]);
  hook.change(() => undefined);
  start();
  await time.runUntil(() => isDone());
  const ids = hook.received.map(({ data }) => data.id);
  expect(ids).toHaveLength(2);
  expect(new Set(ids).size).toBe(1);
});
