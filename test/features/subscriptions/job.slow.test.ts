/** A maintenance round reads its files each time: broken, repaired and changed ones. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { isDigestOf } from '../../../src/admin/account-context.ts';
import type { MaintenanceResult } from '../../../src/admin/maintain.ts';
import { loadAccountConfig } from '../../../src/admin/settings.ts';
import {
  credentialsFileName,
  writeCredentialsFile,
} from '../../../src/core/config/endpoint-credentials.ts';
import { subscriptionsFileName } from '../../../src/core/config/subscriptions-file.ts';
import { AppError, errorText } from '../../../src/core/terms/app-error.ts';
import { maintenanceRound, startMaintenance } from '../../../src/features/subscriptions/job.ts';
import { createAcquireLock } from '../../../src/store/engine/locks.ts';
import { registrationOf } from '../../admin/samples.ts';
import { startCommand } from '../../helpers/fake-io.ts';
import { recordingLog } from '../../helpers/recording-log.ts';
import { settings } from '../../helpers/settings.ts';
import { openStore } from '../../helpers/store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { type AccountContext, endpointPair, openAccountContext } from './account-context.ts';

const secret = 'a-secret-not-to-be-shown';
const io = {
  signal: new AbortController().signal,
  random: () => 0.5,
  newId: () => 'id',
  newSecret: () => 'salt',
  readFile: () => '',
};

/** A store without any registration, and an account that must not be used. */
async function openQuietContext({ withCredentials = true } = {}) {
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'data');
  const store = await openStore({ dataDir, nowUs: () => 0 });
  onTestFinished(() => store.close());
  if (withCredentials) await writeCredentialsFile(dataDir, [{ username: 'u', password: secret }]);
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

describe('a round', () => {
  it('sends no request when nothing is registered', async () => {
    const { round, asked } = await openQuietContext();
    expect(await round()).toEqual([]);
    expect(asked).not.toHaveBeenCalled();
  });

  it.each<[string, (context: { folder: string; dataDir: string }) => void, RegExp]>([
    [
      'credentials that are broken',
      ({ dataDir }) => writeFileSync(join(dataDir, credentialsFileName), `{"${secret}`),
      /is invalid/,
    ],
    [
      'a broken earshot.config.ts',
      ({ folder }) => writeFileSync(join(folder, subscriptionsFileName), 'export default 1;'),
      /is invalid/,
    ],
  ])(
    'is refused for %s, releases the lock, and succeeds when they are repaired',
    async (_title, harm, reason) => {
      const { folder, dataDir, round } = await openQuietContext();
      harm({ folder, dataDir });
      const error = await round().catch((refusal: unknown) => refusal);
      expect(error).toMatchObject({
        code: 'configuration',
        text: expect.stringMatching(reason),
      });
      expect(String(error)).not.toContain(secret);
      await writeCredentialsFile(dataDir, [{ username: 'u', password: secret }]);
      const config = 'export default { subscriptions: {} };';
      writeFileSync(join(folder, subscriptionsFileName), config);
      expect(await round()).toEqual([]);
    },
  );

  it('says what to do when there are no credentials for a push subscription', async () => {
    const { store, round, acquireLock } = await openQuietContext({ withCredentials: false });
    await store.administration.commit({ save: registrationOf() });
    await expect(round()).rejects.toMatchObject({
      text: expect.stringMatching(/no endpoint credentials.*credentials create/),
    });
    (await acquireLock('subscriptions', { waitMs: 0 }))();
  });
});

describe('maintenance within a receiver', () => {
  it('recreates a deleted subscription with the current credentials, through its store', async () => {
    const { env, folder, dataDir, log, receiver, run, passDays, sandbox } =
      await openAccountContext();
    expect((await run(['register', '--event', 'created', '--yes'])).code).toBe(0);
    const config = loadAccountConfig({ settings, env, readFile: () => '' }, { publicUrl: true });
    const next = { username: 'earshot-next', password: 'the-next-endpoint-password' };
    await writeCredentialsFile(dataDir, [endpointPair, next]);
    await vi.waitFor(() => expect(log.join()).toContain('reloaded endpoint credentials'), {
      timeout: 10_000,
    });
    passDays(366);
    expect(sandbox.subscriptions()).toEqual([]);
    const { log: recorded, lines } = recordingLog();
    const nowUs = () => Math.trunc(sandbox.clock.now()) * 1000;
    const readFile = (path: string) => readFileSync(path, 'utf8');
    const context = { ...io, settings, nowUs, fetch, workingDir: folder, readFile };
    const loop = startMaintenance({
      round: () => maintenanceRound(config, receiver.store, context),
      log: recorded,
      random: () => 0.5,
      timing: { firstMs: 0 },
    });
    onTestFinished(() => loop.stop());
    await vi.waitFor(() => expect(lines.length).toBeGreaterThan(0), { timeout: 15_000 });
    expect(lines).toContainEqual({
      ...{ level: 'info', message: 'maintenance made a change' },
      fields: expect.objectContaining({ did: 'recreate' }),
    });
    expect(sandbox.subscriptions()).toMatchObject([{ status: 'running' }]);
    const [registration] = await receiver.store.administration.registrations();
    expect(isDigestOf(registration?.credentialsDigest ?? null, next)).toBe(true);
    expect(JSON.stringify(lines)).not.toContain('endpoint-password');
  });
});

const quiet: MaintenanceResult = {
  name: 'alps',
  status: 'running',
  did: null,
  notes: [],
  hasNewNotes: false,
  failure: null,
};

/** Repeats a round; only a failure shortens the interval. */
function startLoop(round: () => Promise<MaintenanceResult[]>) {
  const { log, lines } = recordingLog();
  const tried = vi.fn(round);
  const { stop } = startMaintenance({
    round: tried,
    log,
    random: () => 0.5,
    timing: { firstMs: 0, intervalMs: 3_600_000, retryMs: 10 },
  });
  onTestFinished(stop);
  /** Returns the log once it has this number of lines. */
  const logged = async (count: number) => {
    await vi.waitFor(() => expect(lines.length).toBeGreaterThanOrEqual(count), { timeout: 15_000 });
    return lines;
  };
  return { stop, logged, tried };
}

it('repeats a round early when one of the subscriptions failed', async () => {
  const failed = { ...quiet, name: 'sea', failure: 'The disk is full.' };
  const { tried } = startLoop(async () => [quiet, failed, quiet]);
  await vi.waitFor(() => expect(tried.mock.calls.length).toBeGreaterThan(2), { timeout: 15_000 });
});

it('does not wait forever for a round in progress', async () => {
  const { stop, tried } = startLoop(() => new Promise(() => undefined));
  await vi.waitFor(() => expect(tried).toHaveBeenCalled());
  const beforeMs = performance.now();
  await stop();
  expect(performance.now() - beforeMs).toBeLessThan(10_000);
});

it('logs the reason of a failed round', async () => {
  const refusal = new AppError('configuration', 'The file has faults.', {
    details: ['subscriptions.Alps: use small letters'],
  });
  const { logged } = startLoop(() => Promise.reject(refusal));
  expect((await logged(1))[0]).toEqual({
    level: 'error',
    fields: { reason: errorText(refusal), details: refusal.details },
    message: 'maintenance failed; retrying later',
  });
});

it('does not warn when another program holds the lock, and retries soon', async () => {
  const conflict = new AppError('conflict', 'Another earshot program is at work.');
  const { logged } = startLoop(() => Promise.reject(conflict));
  expect((await logged(2))[1]).toEqual({
    level: 'info',
    fields: { reason: errorText(conflict) },
    message: 'maintenance postponed: another command is changing the account',
  });
});

it('logs changes, failures, and new notes', async () => {
  const notes = [
    { code: 'a', message: 'It is paused.', advice: 'Resume it.' },
    { code: 'b', message: 'Its filter changed.', advice: 'Register it.' },
  ];
  const { logged } = startLoop(async () => [
    quiet,
    { ...quiet, name: 'ice', status: 'paused', did: 'resume' },
    { ...quiet, name: 'sea', status: 'gone', failure: 'The disk is full.' },
    { ...quiet, name: 'old', status: 'paused', notes, hasNewNotes: true },
    { ...quiet, name: 'older', notes, hasNewNotes: false },
  ]);
  const old = { subscription: 'old', status: 'paused' };
  expect((await logged(4)).slice(0, 4)).toEqual([
    {
      level: 'info',
      fields: { subscription: 'ice', status: 'paused', did: 'resume' },
      message: 'maintenance made a change',
    },
    {
      level: 'error',
      fields: { subscription: 'sea', status: 'gone', reason: 'The disk is full.' },
      message: 'maintenance failed',
    },
    {
      level: 'warn',
      fields: { ...old, note: 'It is paused. Resume it.' },
      message: 'maintenance found a problem',
    },
    {
      level: 'warn',
      fields: { ...old, note: 'Its filter changed. Register it.' },
      message: 'maintenance found a problem',
    },
  ]);
});

function roundOf({ env, sandbox, folder, receiver }: AccountContext) {
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const config = loadAccountConfig({ settings, env, readFile }, { publicUrl: true });
  const io = {
    nowUs: () => Math.trunc(sandbox.clock.now()) * 1000,
    random: () => 0.5,
    signal: new AbortController().signal,
    newId: () => 'id',
    newSecret: () => 'a-secret',
    fetch,
    readFile,
    settings,
    workingDir: folder,
  };
  return () => maintenanceRound(config, receiver.store, io);
}

describe('a round with a running receiver', () => {
  it('resumes what the catalogue has paused, with the current credentials', async () => {
    const context = await openAccountContext();
    const round = roundOf(context);
    expect(await context.run(['register', '--event', 'created', '--yes'])).toMatchObject({
      code: 0,
    });
    const rotated = await context.run(['credentials', 'rotate', '--wait', '1']);
    expect(rotated, rotated.err).toMatchObject({ code: 0 });
    context.passDays(366);
    expect(await round()).toMatchObject([{ name: 'default', status: 'gone', did: 'recreate' }]);
    // Recreated with the new credentials: register has nothing left to do.
    expect(await context.run(['register', '--check'])).toMatchObject({ code: 0 });
  });

  it('waits for a command that holds the lock', async () => {
    const context = await openAccountContext();
    const release = await createAcquireLock(context.dataDir)('subscriptions', { waitMs: 0 });
    await expect(roundOf(context)()).rejects.toMatchObject({ code: 'conflict' });
    release();
    expect(await roundOf(context)()).toEqual([]);
  });
});

describe('earshot start', () => {
  it('reports without an account that maintenance is off, and what is missing', async () => {
    const context = await openAccountContext();
    const { EARSHOT_ACCOUNT_USERNAME: _, EARSHOT_ACCOUNT_PASSWORD: __, ...env } = context.env;
    const start = startCommand(['start'], { env, workingDir: context.folder });
    await expect.poll(start.err).toContain('subscription maintenance disabled');
    expect(start.err()).toContain('EARSHOT_ACCOUNT_USERNAME');
    start.stop();
    expect(await start.ended).toMatchObject({ code: 0 });
  });
});
