/** `earshot setup --pull`: no questions about an endpoint, and the registration before the start. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import { expectEnd, type Running } from '../../helpers/fake-io.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openReader } from '../../store/sqlite-store.ts';
import { openPullAccount } from '../pull/pull-account.ts';
import { account } from '../subscriptions/account-context.ts';

/** Flags of a set-up without questions. */
const complete = [
  ...['setup', '--pull', '--account-username', account.username],
  ...['--account-password-file', 'password', '--collection', 'S2', '--yes'],
];

/** Opens an empty folder with the password of the account in a file, and an account. */
async function openFolder() {
  const { sandbox, begin, run, ...context } = await openPullAccount();
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'data');
  writeFileSync(join(folder, 'password'), account.password, { mode: 0o600 });
  const { EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWORD, ...rest } = context.env;
  const options = { env: { ...rest, EARSHOT_DATA_DIR: dataDir }, workingDir: folder };
  const path = join(folder, '.env');
  return {
    ...{ sandbox, folder, dataDir, path },
    written: () => parseEnv(readFileSync(path, 'utf8')),
    run: (argv: readonly string[], answers?: string[]) =>
      run(argv, { ...options, ...(answers && { answers }) }),
    begin: (argv: readonly string[], send: typeof fetch = fetch): Running =>
      begin(argv, { ...options, fetch: send }),
  };
}

const isCreation = (input: Parameters<typeof fetch>[0]) =>
  input instanceof Request && input.method === 'POST' && input.url.endsWith('/Subscriptions');

describe('setup --pull', () => {
  it('registers before it starts, and prints the first notification', async () => {
    const { sandbox, begin, dataDir } = await openFolder();
    let printedBefore: string | undefined;
    const running = begin(complete, async (input, init) => {
      const answer = await fetch(input, init);
      if (isCreation(input)) {
        printedBefore = running.err();
        await sandbox.publishNow(40);
      }
      return answer;
    });
    await expect.poll(running.err).toContain('setup: first notification stored: created S2');
    expect(printedBefore).toContain('create default');
    expect(printedBefore).not.toContain('ready to read queues');
    expect(sandbox.subscriptions()).toMatchObject([{ type: 'pull', status: 'running' }]);
    const queued = sandbox.entries().length;
    await expect.poll(() => sandbox.queues()[0]?.length).toBe(0);
    expect(await openReader(dataDir).lastPosition()).toBe(queued);
    running.stop();
    const { code, err } = await running.ended;
    expect(code).toBe(0);
    expect(err).toMatch(/setup: The receiver has stopped; the catalogue keeps the notifications\./);
    expect(err).not.toContain(account.password);
  });

  it('writes .env without settings of an endpoint, and creates no credentials', async () => {
    const { run, written, path, dataDir, folder } = await openFolder();
    const { err } = await expectEnd(run([...complete, '--no-stay']), 0);
    expect(err).toContain('setup: registered. To read the queue: `earshot start`.');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(written()).toMatchObject({
      EARSHOT_ACCOUNT_USERNAME: account.username,
      EARSHOT_ACCOUNT_PASSWORD_FILE: join(folder, 'password'),
    });
    const ofEndpoint = /PUBLIC_URL|_TLS|EARSHOT_LISTEN|ACME|TRUSTED/;
    expect(Object.keys(written()).filter((name) => ofEndpoint.test(name))).toEqual([]);
    expect(existsSync(join(dataDir, 'endpoint-credentials.json'))).toBe(false);
  });

  it.each(['running', 'paused'] as const)(
    'asks before it reads a %s queue that another program may read',
    async (status) => {
      const { run, sandbox } = await openFolder();
      const filter = "Collection/Name eq 'SENTINEL-2'";
      const { id } = sandbox.addSubscription({ type: 'pull', filter, status });
      const asking = [...complete.filter((word) => word !== '--yes'), '--no-stay'];
      const { err, out } = await expectEnd(run(asking, ['', '', 'n']), 1);
      expect(err).toMatch(/Apply these changes\? .*\n.*Nothing was changed/);
      expect(out).toContain('no other program may read this subscription');
      await expectEnd(run([...asking, '--yes']), 0);
      expect(sandbox.subscriptions()).toMatchObject([{ id, status: 'running' }]);
    },
  );
});
