/** What a round of maintenance reads at its moment: files that are broken, and mended, and changed. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { isDigestOf } from '../../src/admin/plan-context.ts';
import { maintenanceRound, startMaintenance } from '../../src/cli/start/maintenance.ts';
import { loadAccountConfig } from '../../src/config/config.ts';
import {
  credentialsFileName,
  writeCredentialsFile,
} from '../../src/config/endpoint-credentials.ts';
import { subscriptionsFileName } from '../../src/config/subscriptions-file.ts';
import { createTakeLock } from '../../src/store/engine/locks.ts';
import { openStore } from '../../src/store/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { endpointPair, openAccountWorld } from './account-world.ts';

const secret = 'a-secret-not-to-be-told';
const io = {
  signal: new AbortController().signal,
  random: () => 0.5,
  newSecret: () => 'salt',
  readFile: () => '',
};

/** A store without any registration, and an account that nobody may ask. */
async function openQuietWorld({ withCredentials = true } = {}) {
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
  const config = loadAccountConfig({ env, readFile: () => '' });
  const asked = vi.fn(() => Promise.reject(new Error('nobody may be asked')));
  const world = { ...io, nowUs: () => 0, fetch: asked, workingDir: folder };
  const round = () => maintenanceRound(config, store, world);
  return { folder, dataDir, asked, round, takeLock: createTakeLock(dataDir) };
}

describe('a round', () => {
  it('asks nobody anything while nothing is registered', async () => {
    const { round, asked } = await openQuietWorld();
    expect(await round()).toEqual([]);
    expect(asked).not.toHaveBeenCalled();
  });

  it.each<[string, (world: { folder: string; dataDir: string }) => void, RegExp]>([
    [
      'credentials that are broken',
      ({ dataDir }) => writeFileSync(join(dataDir, credentialsFileName), `{"${secret}`),
      /not as earshot wrote it/,
    ],
    [
      'a broken earshot.config.ts',
      ({ folder }) => writeFileSync(join(folder, subscriptionsFileName), 'export default 1;'),
      /has faults/,
    ],
  ])(
    'is refused for %s, leaves the lock free, and goes well when they are whole',
    async (_title, harm, reason) => {
      const { folder, dataDir, round } = await openQuietWorld();
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

  it('says what to do when there are no credentials', async () => {
    const { round, takeLock } = await openQuietWorld({ withCredentials: false });
    await expect(round()).rejects.toMatchObject({
      text: expect.stringMatching(/no endpoint credentials.*credentials create/),
    });
    (await takeLock('subscriptions', { waitMs: 0 }))();
  });
});

describe('maintenance beside a receiver', () => {
  it('makes a deleted subscription anew with the credentials of that moment, over its store', async () => {
    const { env, folder, dataDir, log, receiver, run, passDays, sandbox } =
      await openAccountWorld();
    expect((await run(['register', '--event', 'created', '--yes'])).code).toBe(0);
    const config = loadAccountConfig({ env, readFile: () => '' });
    const next = { username: 'earshot-next', password: 'the-next-endpoint-password' };
    await writeCredentialsFile(dataDir, [endpointPair, next]);
    await vi.waitFor(() => expect(log.join()).toContain('endpoint credentials changed'), {
      timeout: 10_000,
    });
    passDays(366);
    expect(sandbox.subscriptions()).toEqual([]);
    const lines: string[] = [];
    const note = (fields: object, message: string) =>
      void lines.push(JSON.stringify({ ...fields, message }));
    const nowUs = () => Math.trunc(sandbox.clock.now()) * 1000;
    const readFile = (path: string) => readFileSync(path, 'utf8');
    const world = { ...io, nowUs, fetch, workingDir: folder, readFile };
    const loop = startMaintenance({
      round: () => maintenanceRound(config, receiver.store, world),
      log: { debug: note, info: note, warn: note, error: note },
      random: () => 0.5,
      timing: { firstMs: 0 },
    });
    onTestFinished(() => loop.stop());
    await vi.waitFor(() => expect(lines.length).toBeGreaterThan(0), { timeout: 15_000 });
    expect(lines.join('\n')).toContain('"did":"recreate","message":"maintenance acted"');
    expect(sandbox.subscriptions()).toMatchObject([{ status: 'running' }]);
    const [registration] = await receiver.store.administration.registrations();
    expect(isDigestOf(registration?.credentialsDigest ?? null, next)).toBe(true);
    expect(lines.join()).not.toContain('endpoint-password');
  });
});
