/** Sinks inside a receiver: log lines and watchdog state for sinks that cannot start, or wait without result. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { serveSinks } from '../../../src/features/sinks/job.ts';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { recordingLog } from '../../helpers/recording-log.ts';
import { settings } from '../../helpers/settings.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';
import { messageUrls } from './sink-definition.ts';
import { queued } from './sink-items.ts';

const file = (sinks: string) => `export default { sinks: ${sinks} };\n`;

type Opened = Awaited<ReturnType<typeof openSqliteStore>>;

/** Serves the sinks of this `earshot.config.ts`, if any; `prepare` gets the data directory. */
async function serve(
  config: string | null,
  prepare: (dataDir: string, store: Opened['store']) => unknown = () => undefined,
) {
  const { store, dataDir } = await openSqliteStore();
  await prepare(dataDir, store);
  const workingDir = temporaryDirectory();
  if (config !== null) writeFileSync(join(workingDir, 'earshot.config.ts'), config);
  const { log, lines: all } = recordingLog();
  const io = { nowUs: () => 0, random: () => 0.5, fetch, env: {}, workingDir, settings };
  const served = await serveSinks({ store, urls: messageUrls }, log, io);
  onTestFinished(() => served.stop());
  const lines = () => all.filter(({ level }) => level !== 'debug');
  return { ...served, lines, store, dataDir };
}

describe('the sinks of a receiver', () => {
  it('are reported to the watchdog, also when there are none', async () => {
    const fine = { kinds: new Map(), faults: new Map(), fault: null };
    expect((await serve(null)).state()).toEqual({ ...fine, names: [] });
    const { state } = await serve(file("{ act: { command: ['true'] } }"));
    const kinds = new Map([['act', 'command']]);
    expect(state()).toEqual({ ...fine, names: ['act'], kinds });
  });

  it('are an unknown list and a fault with its reason when the file is invalid', async () => {
    const { state } = await serve(file('{ act: {} }'));
    const fault = expect.stringMatching(/earshot\.config\.ts[\s\S]*act/);
    expect(state()).toMatchObject({ names: null, fault });
  });

  it('start except for the faulty ones, whose reasons are logged and reported to the watchdog', async () => {
    const sinks = `{
      act: { command: ['true'], from: 'start' },
      odd: { command: ['true'], from: 'start', filter: "Naem eq 'x'" },
      hook: { webhook: 'https://a.example', from: 'start', secretFile: 'gone' },
    }`;
    const { state, lines, store } = await serve(file(sinks), async (_dataDir, store) => {
      for (const number of [1, 2]) await store.accept(delivery(notification(number)));
      await queued(store, ['product-1'], { sink: 'hook' });
    });
    const { names, faults = new Map(), fault } = state();
    expect({ names, fault }).toEqual({ names: ['act', 'hook', 'odd'], fault: null });
    expect([...faults]).toEqual([
      ['hook', expect.stringMatching(/^sinks\.hook\.secretFile: .* \(ENOENT\)/)],
      ['odd', expect.stringMatching(/^sinks\.odd\.filter: error/)],
    ]);
    await expect.poll(() => store.cursor('sink:act')).toBe(2);
    expect(lines().filter(({ level }) => level === 'error')).toMatchObject(
      ['hook', 'odd'].map((sink) => ({ fields: { sink, details: [faults.get(sink)] } })),
    );
    // The state of the faulty sinks does not change.
    expect(await store.cursor('sink:hook')).toBe(1);
    expect(await store.cursor('sink:odd')).toBeNull();
    const counts = await store.sinks.counts();
    expect(counts.find(({ sink }) => sink === 'hook')).toMatchObject({ waiting: 1, dead: 0 });
  });

  it('wait and log it while another program holds the lock', async () => {
    const act = "{ act: { command: ['true'], from: 'start' } }";
    const acquireLock = vi.fn(async () => {
      throw new AppError('conflict', 'Another program delivers.');
    });
    const locked = (_: string, store: Opened['store']) => Object.assign(store, { acquireLock });
    const { lines } = await serve(file(act), locked);
    const message = 'sinks wait for another program';
    await vi.waitFor(() => expect(lines()).toMatchObject([{ level: 'info', message }]));
    expect(acquireLock).toHaveBeenCalledOnce();
  });

  it('have a fault when the lock file cannot be used', async () => {
    const act = "{ act: { command: ['true'], from: 'start' } }";
    const blocked = (dataDir: string) => mkdirSync(join(dataDir, 'sinks.lock'));
    const { state } = await serve(file(act), blocked);
    await vi.waitFor(() => expect(state().fault).toContain('sinks.lock'));
    expect(state().names).toEqual(['act']);
  });
});
