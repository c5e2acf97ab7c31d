/** Batches: when one is sent, and that a refusal or a failure concerns only the item that causes it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/sandbox/clock.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import type { HookAnswer } from './hook-server.ts';
import { openHookContext, openSinkContext } from './sink-context.ts';
import { definition, webhookTarget } from './sink-definition.ts';

type Context = Awaited<ReturnType<typeof openHookContext>>;

const positionsIn = (body: string): number[] =>
  JSON.parse(body).map(({ data }: { data: { position: number } }) => data.position);
const batches = ({ hook }: Context) => hook.received.map(({ body }) => positionsIn(body));

async function acceptSome({ accept }: Pick<Context, 'accept'>, count: number) {
  for (let i = 0; i < count; i += 1) await accept();
}

function startBatches(context: Context, items: number, waitMs = 10_000) {
  const target = webhookTarget(context.hook.url, { isBatch: true });
  return context.start(
    definition(target, { batch: { items, waitMs }, concurrency: 2, timeoutMs: 3_600_000 }),
  );
}

/** Answers with this status while a position is in the batch. */
const failingFor =
  (position: number, status: number): HookAnswer =>
  ({ body }, response) =>
    void (positionsIn(body).includes(position) && response.writeHead(status).end());

describe('a batch', () => {
  it('is sent when it is complete, or when its oldest notification has waited for its time', async () => {
    const context = await openHookContext();
    await acceptSome(context, 5);
    startBatches(context, 3);
    await context.time.runUntil(() => context.hook.received.length === 1, { stepMs: 50 });
    expect(batches(context)).toEqual([[1, 2, 3]]);
    const startUs = context.time.nowUs();
    await context.time.runUntil(() => context.hook.received.length === 2, { stepMs: 100 });
    expect((context.time.nowUs() - startUs) / 1e6).toBeGreaterThan(8);
    expect((context.time.nowUs() - startUs) / 1e6).toBeLessThan(12);
    expect(batches(context)).toEqual([
      [1, 2, 3],
      [4, 5],
    ]);
    await context.isDone();
  });

  it('has one notification of each product, in their order', async () => {
    const context = await openHookContext();
    for (const ProductId of ['a', 'a', 'b', 'A', 'b']) await context.accept({ ProductId });
    startBatches(context, 10, 1_000);
    await context.isDone();
    expect(batches(context)).toEqual([[1, 3], [2, 5], [4]]);
  });

  it('is split when it is refused, until only the refused notification is left', async () => {
    const context = await openHookContext(failingFor(6, 400));
    await acceptSome(context, 20);
    startBatches(context, 20);
    await context.isDone();
    expect((await context.items('dead')).map(({ position }) => position)).toEqual([6]);
    // Once as a whole, in halves down to one, and then the retries of that one.
    const sizes = batches(context)
      .filter((one) => one.includes(6))
      .map((one) => one.length);
    expect(sizes).toEqual([20, 10, 5, 3, 2, 1, 1, 1, 1, 1]);
    const delivered = batches(context)
      .filter((one) => !one.includes(6))
      .flat();
    expect(delivered.toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, i) => i + 1).filter((position) => position !== 6),
    );
  });

  it('that fails because of one notification fails later for that one alone', async () => {
    const context = await openHookContext(failingFor(2, 500));
    await acceptSome(context, 4);
    startBatches(context, 2, 1_000);
    const more = async () => {
      await context.accept();
      return (await context.items('dead')).length > 0;
    };
    await context.time.runUntil(more, { stepMs: 60_000 });
    expect((await context.items('dead')).map(({ position }) => position)).toEqual([2]);
    await context.isDone();
  });

  it('is retried as one when the service is down, which counts as one failure', async () => {
    const context = await openHookContext((_, response) => void response.writeHead(503).end());
    context.context.random = createRandom(45).next;
    await acceptSome(context, 3);
    startBatches(context, 3, 1_000);
    await context.time.runUntil(() => context.hook.received.length === 3, { stepMs: 200 });
    expect(batches(context)).toEqual([
      [1, 2, 3],
      [1, 2, 3],
      [1, 2, 3],
    ]);
    context.hook.change(() => undefined);
    await context.isDone();
    expect(await context.items('dead')).toEqual([]);
  });

  it('is the lines of the standard input of a command', async () => {
    const file = join(temporaryDirectory(), 'lines');
    const { accept, start, isDone } = await openSinkContext();
    await acceptSome({ accept }, 4);
    const target = {
      kind: 'command',
      command: ['sh', '-c', 'cat >> "$0"; echo >> "$0"', file],
    } as const;
    start(definition(target, { batch: { items: 4, waitMs: 60_000 } }));
    await expect.poll(() => isDone()).toBe(true);
    const [first, ...others] = readFileSync(file, 'utf8').trimEnd().split('\n\n');
    expect(others).toEqual([]);
    const positions = first?.split('\n').map((line) => JSON.parse(line).position);
    expect(positions).toEqual([1, 2, 3, 4]);
  });
});
