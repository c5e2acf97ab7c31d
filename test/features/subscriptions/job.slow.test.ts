/** A maintenance round reads its files each time: broken, repaired and changed ones. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { MaintenanceResult } from '../../../src/admin/maintain.ts';
import { loadAccountConfig } from '../../../src/admin/settings.ts';
import {
  credentialsFileName,
  writeCredentialsFile,
} from '../../../src/core/config/endpoint-credentials.ts';
import { subscriptionsFileName } from '../../../src/core/config/subscriptions-file.ts';
import { maintenanceRound, startMaintenance } from '../../../src/features/subscriptions/job.ts';
import { createAcquireLock } from '../../../src/store/engine/locks.ts';
import { startCommand } from '../../helpers/fake-io.ts';
import { recordingLog } from '../../helpers/recording-log.ts';
import { settings } from '../../helpers/settings.ts';
import { openStore } from '../../helpers/store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openAccountContext } from './account-context.ts';

const secret = 'a-secret-not-to-be-shown';
const io = {
  signal: new AbortController().signal,
  random: () => 0.5,
  newId: () => 'id',
  newSecret: () => 'salt',
  readFile: () => '',
};

/** A store without any registration, and an account that must not be used. */
async function openQuietContext() {
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'data');
  const store = await openStore({ dataDir });
  onTestFinished(() => store.close());
  await writeCredentialsFile(dataDir, [{ username: 'u', password: secret }]);
  const env = {
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_PUBLIC_URL: 'https://earshot.example.org',
    EARSHOT_ACCOUNT_USERNAME: 'me',
    EARSHOT_ACCOUNT_PASSWORD: 'password',
  };
  const config = loadAccountConfig({ settings, env, readFile: () => '' }, { publicUrl: true });
  const asked = vi.fn(() => Promise.reject(new Error('nobody may be asked')));
  const context = { ...io, settings, nowUs: () => 0, fetch: asked, workingDir: folder };
  const round = () => maintenanceRound(config, store, context);
  return { folder, dataDir, store, asked, round, acquireLock: createAcquireLock(dataDir) };
}

it('a round reads its files each time: it is refused while one is broken, and releases the lock', async () => {
  const { folder, dataDir, round, asked } = await openQuietContext();
  const invalid = { code: 'configuration', text: expect.stringMatching(/is invalid/) };
  writeFileSync(join(dataDir, credentialsFileName), `{"${secret}`);
  const error = await round().catch((refusal: unknown) => refusal);
  expect(error).toMatchObject(invalid);
  expect(String(error)).not.toContain(secret);
  await writeCredentialsFile(dataDir, [{ username: 'u', password: secret }]);
  writeFileSync(join(folder, subscriptionsFileName), 'export default 1;');
  await expect(round()).rejects.toMatchObject(invalid);
  writeFileSync(join(folder, subscriptionsFileName), 'export default { subscriptions: {} };');
  // Sends no request, because nothing is registered.
  expect(await round()).toEqual([]);
  expect(asked).not.toHaveBeenCalled();
});

it('a round is postponed while a command is changing the account', async () => {
  const { round, acquireLock } = await openQuietContext();
  const release = await acquireLock('subscriptions', { waitMs: 0 });
  await expect(round()).rejects.toMatchObject({ code: 'conflict' });
  release();
});

const quiet: MaintenanceResult = {
  name: 'alps',
  status: 'running',
  did: null,
  notes: [],
  failure: null,
};

it('logs changes, failures, and notes, and repeats a round early after a failure', async () => {
  const notes = [{ message: 'It is paused.', advice: 'Resume it.' }];
  const round = async (): Promise<MaintenanceResult[]> => [
    quiet,
    { ...quiet, name: 'ice', status: 'paused', did: 'resume' },
    { ...quiet, name: 'sea', status: 'gone', failure: 'The disk is full.' },
    { ...quiet, name: 'old', status: 'paused', notes },
  ];
  const { log, lines } = recordingLog();
  const timing = { firstMs: 0, intervalMs: 3_600_000, retryMs: 10 };
  const { stop } = startMaintenance({ round, log, random: () => 0.5, timing });
  onTestFinished(stop);
  // Two rounds: only a failure shortens the interval.
  await vi.waitFor(() => expect(lines.length).toBeGreaterThanOrEqual(6), { timeout: 15_000 });
  const old = { level: 'warn', message: 'maintenance found a problem' };
  expect(lines.slice(0, 3)).toMatchObject([
    { level: 'info', fields: { subscription: 'ice', status: 'paused', did: 'resume' } },
    {
      level: 'error',
      fields: { subscription: 'sea', status: 'gone', reason: 'The disk is full.' },
    },
    { ...old, fields: { subscription: 'old', note: 'It is paused. Resume it.' } },
  ]);
});

it('earshot start reports without an account that maintenance is off, and what is missing', async () => {
  const context = await openAccountContext();
  const { EARSHOT_ACCOUNT_USERNAME: _, EARSHOT_ACCOUNT_PASSWORD: __, ...env } = context.env;
  const start = startCommand(['start'], { env, workingDir: context.folder });
  await expect.poll(start.err).toContain('subscription maintenance disabled');
  expect(start.err()).toContain('EARSHOT_ACCOUNT_USERNAME');
  start.stop();
  expect(await start.ended).toMatchObject({ code: 0 });
});
