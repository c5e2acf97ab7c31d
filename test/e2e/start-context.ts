/** An account with a subscription, and `earshot start` in this process, with short intervals of background jobs. */
import { expect, onTestFinished, vi } from 'vitest';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { openAccountContext } from '../features/subscriptions/account-context.ts';
import { collect } from '../helpers/deliveries.ts';
import { type Running, startCommand } from '../helpers/fake-io.ts';
import { openStoreReader } from '../helpers/store.ts';

// The command has no option for these intervals, and both jobs start half a minute after it.
vi.mock('../../src/features/coverage/job.ts', async (load) => {
  const real = await load<typeof import('../../src/features/coverage/job.ts')>();
  const soon = { firstMs: 50, intervalMs: 100, retryMs: 100 };
  const startReconcile: typeof real.startReconcile = (parts, config, io) =>
    real.startReconcile(parts, config, io, soon);
  return { ...real, startReconcile };
});
vi.mock('../../src/features/alerts/watchdog.ts', async (load) => {
  const real = await load<typeof import('../../src/features/alerts/watchdog.ts')>();
  const startWatchdog: typeof real.startWatchdog = (deps) =>
    real.startWatchdog(deps, { firstMs: 50, intervalMs: 100, deliveryIntervalMs: 50 });
  return { ...real, startWatchdog };
});

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

export type StartContext = Awaited<ReturnType<typeof openStartContext>>;

/**
 * Sets the clock to five minutes past an hour, so that this hour settles only when a test advances the clock. A
 * failed push is retried immediately, and then lost.
 */
async function openStartContext() {
  const context = await openAccountContext({ sandbox: { retryDelaysMs: [1, 1, 1] } });
  const { sandbox, receiver, dataDir, folder, env } = context;
  const passMs = (ms: number) => sandbox.clock.advance(ms);
  passMs(hourMs - (sandbox.clock.now() % hourMs) + 5 * minuteMs);
  // From now on, the command listens at this address.
  env.EARSHOT_LISTEN = new URL(receiver.url ?? '').host;
  env.EARSHOT_RECONCILE_REQUESTS_PER_MINUTE = '60000';
  await receiver.close();
  const reader = openStoreReader(dataDir);
  onTestFinished(() => reader.close());
  const start = async (more: Record<string, string> = {}): Promise<Running> => {
    const nowUs = () => Math.trunc(sandbox.clock.now()) * 1_000;
    const options = { env: { ...env, ...more }, nowUs, workingDir: folder };
    const running = startCommand(['start'], options);
    onTestFinished(async () => {
      running.stop();
      await running.ended;
    });
    await expect.poll(running.err).toContain('"ready to receive notifications"');
    return running;
  };
  /** Stops it as SIGTERM does. */
  const stop = async (running: Running): Promise<void> => {
    running.stop();
    const { code, err } = await running.ended;
    expect(code, err).toBe(0);
  };
  const command = async (...argv: string[]) => {
    const ended = await context.run(argv);
    expect(ended, ended.err).toMatchObject({ code: 0 });
    return ended;
  };
  const entries = () => collect(reader.find({ order: 'oldest' }));
  return { ...context, reader, minuteMs, hourMs, passMs, start, stop, command, entries };
}

/** Opens a context with a registered subscription to created events; the program is stopped. */
export async function openRegistered(): Promise<StartContext> {
  const context = await openStartContext();
  const running = await context.start();
  await context.command('register', '--event', 'created', '--yes');
  await context.stop(running);
  // The dates of products are up to a minute before their notifications.
  context.passMs(2 * context.minuteMs);
  return context;
}

/**
 * Advances the clock and calls `rest` between two rounds of comparison. Otherwise an answer in flight would contain an
 * old time, and a round at the end of a pause would leave it to the comparison of the hour.
 */
export async function passBetweenRounds(
  context: StartContext,
  ms: number,
  rest?: () => Promise<unknown>,
): Promise<void> {
  const release = await createAcquireLock(context.dataDir)('reconcile', { waitMs: 15_000 });
  try {
    context.passMs(ms);
    await rest?.();
  } finally {
    release();
  }
}

/** Publishes products, and waits until each push has arrived or is lost. */
export async function publish({ sandbox }: StartContext, count: number): Promise<void> {
  await sandbox.publishNow(count);
  await sandbox.quiet();
  await expect.poll(() => sandbox.totals().pending).toBe(0);
}

/** Returns the sorted ids of the products in the catalogue. */
export const publishedIds = ({ sandbox }: StartContext): string[] =>
  [...sandbox.events()].map(({ productId }) => productId).toSorted();
