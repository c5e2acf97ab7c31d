/** A command, a webhook and a NATS server that hang, all at once and under load: a fourth sink stays current. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startHook } from '../features/sinks/hook-server.ts';
import { hasNats, startNats } from '../features/sinks/nats-server.ts';
import { definition } from '../features/sinks/sink-definition.ts';
import { collect } from '../helpers/deliveries.ts';
import { openStoreReader } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** Minimum number of items delivered while the three hang. */
const itemsMin = 600;
const timeoutMs = 600_000;

it.skipIf(!hasNats)(
  'leaves a sink current while three others hang (needs nats-server)',
  async () => {
    const folder = temporaryDirectory();
    const [dataDir, pids] = [join(folder, 'data'), join(folder, 'pids')];
    const nats = await startNats();
    await nats.addStream(['earshot.products']);
    const hanging = await startHook({ answer: () => 'hang' });
    const delaysMs: number[] = [];
    const current = await startHook({
      answer: ({ data }) => void delaysMs.push(Date.now() - Date.parse(data.receivedAt)),
    });
    const webhook = (url: string) => ({ kind: 'webhook', url, secret: null, ca: null }) as const;
    const login = { subject: 'earshot.products', credentials: { kind: 'none' }, ca: null } as const;
    const sinks = [
      definition(
        { kind: 'command', command: ['sh', '-c', 'echo $$ >> "$0"; exec sleep 600', pids] },
        { name: 'command', concurrency: 2, timeoutMs },
      ),
      definition(webhook(hanging.url), { name: 'webhook', concurrency: 8, timeoutMs }),
      definition(
        { kind: 'nats', servers: [nats.server], ...login },
        { name: 'nats', concurrency: 32, timeoutMs },
      ),
      definition(webhook(current.url), { name: 'current', concurrency: 8 }),
    ];
    const started = () =>
      existsSync(pids) ? readFileSync(pids, 'utf8').trim().split('\n').map(Number) : [];
    const child = fork(
      join(import.meta.dirname, 'sinks-kill-child.ts'),
      [dataDir, '1', JSON.stringify(sinks)],
      { execArgv: [] },
    );
    onTestFinished(async () => {
      child.kill('SIGKILL');
      for (const pid of started()) process.kill(pid, 'SIGKILL');
    });
    await once(child, 'message');
    await expect.poll(() => started().length).toBe(2);
    await expect.poll(() => hanging.received.length).toBe(8);
    await expect.poll(async () => (await nats.messages()).length).toBeGreaterThan(0);
    nats.pause();

    delaysMs.length = 0;
    await expect.poll(() => delaysMs.length, { timeout: 30_000 }).toBeGreaterThan(itemsMin);
    const sorted = delaysMs.toSorted((one, other) => one - other);
    const words = `median ${sorted[sorted.length >> 1]} ms, longest ${sorted.at(-1)} ms`;
    expect(sorted[sorted.length >> 1], words).toBeLessThan(5_000);
    expect(sorted.at(-1), words).toBeLessThan(15_000);

    // The others have received nothing more, and lost nothing of a backlog of hundreds.
    expect({ command: started().length, webhook: hanging.received.length }).toEqual({
      command: 2,
      webhook: 8,
    });
    const store = openStoreReader(dataDir);
    onTestFinished(() => store.close());
    for (const { sink, waiting, dead } of await store.sinks.counts()) {
      expect(dead).toBe(0);
      if (sink !== 'current') expect(waiting, sink).toBeGreaterThan(itemsMin / 2);
    }
    const letters = await collect(store.sinks.items({ state: 'waiting', sink: 'nats' }));
    expect(letters.every(({ error }) => error === null)).toBe(true);
  },
  90_000,
);
