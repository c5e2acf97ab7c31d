/** A watchdog that is killed between raising an alert and noting that it was told: the next one tells it. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { startServer } from '../http/answering-server.ts';

function start(dataDir: string, url: string): ChildProcess {
  const file = join(import.meta.dirname, 'alert-kill-child.ts');
  const child = fork(file, [dataDir, url], { execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function killed(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  expect(await ended).toEqual([null, 'SIGKILL']);
}

describe('an alert', () => {
  it('is told by the next program, whether the first was killed before it told it or while', async () => {
    const dataDir = temporaryDirectory();
    // The first telling arrives, and is not answered in time to be noted.
    const chat = await startServer(['hang', { status: 204 }]);
    const first = start(dataDir, chat.url);
    await once(first, 'message');
    await killed(first);
    expect(chat.requests).toEqual([]);

    const second = start(dataDir, chat.url);
    await once(second, 'message');
    second.send('tell');
    await vi.waitFor(() => expect(chat.requests).toHaveLength(1), { timeout: 10_000 });
    await killed(second);

    const third = start(dataDir, chat.url);
    await once(third, 'message');
    third.send('tell');
    await vi.waitFor(() => expect(chat.requests).toHaveLength(2), { timeout: 10_000 });
    const store = await openStore({ dataDir, nowUs: () => 0 });
    onTestFinished(() => store.close());
    const nowUs = Date.now() * 1_000;
    await vi.waitFor(async () => expect(await store.alerts.untold(nowUs)).toEqual([]));
    await killed(third);

    const [one, other] = chat.requests.map(({ body }) => JSON.parse(body));
    expect(one).toMatchObject({ kind: 'disk', change: 'raised', alert: 1 });
    expect(other.id).toBe(one.id);
    expect(await store.alerts.alerts({ all: true, limit: 9 })).toHaveLength(1);
  });
});
