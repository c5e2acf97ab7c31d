/** Sinks inside a receiver: what the watchdog is told of those that cannot be started. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { serveSinks } from '../../src/cli/sinks/serve-sinks.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';

const silent = () => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent };
const file = (sinks: string) => `export default { subscriptions: {}, sinks: ${sinks} };\n`;

/** With this `earshot.config.ts`, if any; `prepare` is given the data directory. */
async function serve(config: string | null, prepare: (dataDir: string) => void = silent) {
  const { store, dataDir } = await openSqliteStore();
  prepare(dataDir);
  const workingDir = temporaryDirectory();
  if (config !== null) writeFileSync(join(workingDir, 'earshot.config.ts'), config);
  const io = { nowUs: () => 0, random: () => 0.5, fetch, env: {}, workingDir };
  const served = await serveSinks({ store }, { dataDir }, log, io);
  onTestFinished(() => served.stop());
  return served;
}

describe('the sinks of a receiver', () => {
  it('are named to the watchdog, or known to be none', async () => {
    expect((await serve(null)).handingOver()).toEqual({ names: [], fault: null });
    const { handingOver } = await serve(file("{ act: { command: ['true'] } }"));
    expect(handingOver()).toEqual({ names: ['act'], fault: null });
  });

  it('that the file names wrongly are a fault with its reason, and not known', async () => {
    const { handingOver } = await serve(file('{ act: {} }'));
    const { names, fault } = handingOver();
    expect(names).toBeNull();
    expect(fault).toContain('earshot.config.ts');
    expect(fault).toContain('act');
  });

  it('whose lock file cannot be used are a fault with its reason', async () => {
    const { handingOver } = await serve(file("{ act: { command: ['true'] } }"), (dataDir) =>
      mkdirSync(join(dataDir, 'sinks.lock')),
    );
    await vi.waitFor(() => expect(handingOver().fault).toContain('sinks.lock'));
    expect(handingOver().names).toEqual(['act']);
  });
});
