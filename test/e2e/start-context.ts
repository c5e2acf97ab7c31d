/** An account with a subscription, and `earshot start` in this process: what it does by itself, it does soon. */
import { expect, onTestFinished, vi } from 'vitest';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { openStoreReader } from '../../src/store/store.ts';
import { openAccountContext } from '../cli/account-context.ts';
import { type Running, startCommand } from '../cli/fake-io.ts';
import { collect } from '../helpers/deliveries.ts';

// The command has no way to these times, and the first looks of both are half a minute after its start.
vi.mock('../../src/cli/start/reconcile.ts', async (load) => {
  const real = await load<typeof import('../../src/cli/start/reconcile.ts')>();
  const soon = { firstMs: 50, intervalMs: 100, retryMs: 100 };
  const startReconcile: typeof real.startReconcile = (parts, config, io) =>
    real.startReconcile(parts, config, io, soon);
  return { ...real, startReconcile };
});
vi.mock('../../src/watch/watchdog.ts', async (load) => {
  const real = await load<typeof import('../../src/watch/watchdog.ts')>();
  const soon = { firstMs: 50, intervalMs: 100, tellEveryMs: 50 };
  const startWatchdog: typeof real.startWatchdog = (context) => real.startWatchdog(context, soon);
  return { ...real, startWatchdog };
});

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

export type StartContext = Awaited<ReturnType<typeof openStartContext>>;

/**
 * Five minutes past an hour, so that nothing of this hour settles before a test says so. A push that fails is
 * tried again at once, and then lost.
 */
async function openStartContext() {
  const context = await openAccountContext({ sandbox: { retryDelaysMs: [1, 1, 1] } });
  const { sandbox, receiver, dataDir, folder, env } = context;
  const passMs = (ms: number) => sandbox.clock.advance(ms);
  passMs(hourMs - (sandbox.clock.now() % hourMs) + 5 * minuteMs);
  // From now on it is the command that serves there.
  env.EARSHOT_LISTEN = new URL(receiver.url).host;
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
  /** Ends it as SIGTERM does. */
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

/** With a subscription to all that is created, registered and waiting for the program to start again. */
export async function openRegistered(): Promise<StartContext> {
  const context = await openStartContext();
  const running = await context.start();
  await context.command('register', '--event', 'created', '--yes');
  await context.stop(running);
  // Products are dated most of a minute before their notification.
  context.passMs(2 * context.minuteMs);
  return context;
}

/**
 * Lets time pass while it runs, and does the rest between two rounds of comparing: an answer that was on its way
 * would tell an old time, and a round that comes just as a pause ends leaves that to the comparison of the hour.
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

/** Publishes, and waits until each push has arrived or is lost. */
export async function publish({ sandbox }: StartContext, count: number): Promise<void> {
  await sandbox.publishNow(count);
  await sandbox.quiet();
  await expect.poll(() => sandbox.totals().pending).toBe(0);
}

/** The products that the catalogue has, sorted. */
export const publishedIds = ({ sandbox }: StartContext): string[] =>
  [...sandbox.events()].map(({ productId }) => productId).toSorted();
