/** `earshot setup --pull`: no questions about an endpoint, the registration before the start, and mistakes in the answers. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  ctrlC,
  expectEnd,
  promptsIn,
  type Running,
  runCommand,
  startCommand,
} from '../../helpers/fake-io.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openReader } from '../../store/sqlite-store.ts';
import { openPullAccount } from '../pull/pull-account.ts';
import { account } from '../subscriptions/account-context.ts';

/** Flags of a set-up without questions, if the account is set by variables. */
const complete = ['setup', '--pull', '--collection', 'S2', '--yes'];

/** Opens an empty folder, and an account whose password is in a variable, in a file, or not known. */
async function openFolder(password: 'set' | 'in a file' | 'not set' = 'set') {
  const { sandbox, begin, run, ...context } = await openPullAccount();
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'data');
  const file = join(folder, 'password');
  const { EARSHOT_ACCOUNT_USERNAME: _, EARSHOT_ACCOUNT_PASSWORD: __, ...rest } = context.env;
  const username = { EARSHOT_ACCOUNT_USERNAME: account.username };
  const login = {
    set: { ...username, EARSHOT_ACCOUNT_PASSWORD: account.password },
    'in a file': { ...username, EARSHOT_ACCOUNT_PASSWORD_FILE: file },
    'not set': {},
  };
  if (password === 'in a file') writeFileSync(file, account.password, { mode: 0o600 });
  const env = { ...rest, EARSHOT_DATA_DIR: dataDir, ...login[password] };
  const options = { env, workingDir: folder };
  const path = join(folder, '.env');
  /** Variables in `.env`, as the program reads them at its start. */
  const written = () =>
    (existsSync(path) ? parseEnv(readFileSync(path, 'utf8')) : {}) as Record<string, string>;
  return {
    ...{ sandbox, folder, dataDir, path, written },
    run: (argv: readonly string[], answers?: string[]) =>
      run(argv, { ...options, ...(answers && { answers }) }),
    begin: (argv: readonly string[], send: typeof fetch = fetch): Running =>
      begin(argv, { ...options, fetch: send }),
    /** Runs setup on a terminal. */
    setup: (answers: string[], ...flags: string[]) =>
      run(['setup', '--no-stay', ...flags], {
        ...{ ...options, env: { ...options.env, ...written() }, answers },
      }),
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
    const { run, written, path, dataDir, folder } = await openFolder('in a file');
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
      const { err, out } = await expectEnd(run(asking, ['', '', '', '', 'n']), 1);
      expect(err).toMatch(/Apply these changes\? .*\n.*Nothing was changed/);
      expect(out).toContain('no other program may read this subscription');
      await expectEnd(run([...asking, '--yes']), 0);
      expect(sandbox.subscriptions()).toMatchObject([{ id, status: 'running' }]);
    },
  );
});

/** Questions of a set-up with pull, each with a valid answer. */
const questions: readonly (readonly [question: string, answer: string])[] = [
  ['Pull (earshot reads a queue) or push', 'pull'],
  ['User name of the catalogue account', account.username],
  ['Password of the catalogue account', account.password],
  ['Shared secret of the two-factor login', ''],
  ['Collection,', 'S2'],
  ['Product type,', ''],
  ['Area:', '-170,-56,170,80'],
  ['Upper limit of the cloud cover', ''],
  ['Kind of event', 'created'],
  ['Subscription name', ''],
  ['Enter to continue', ''],
];

const texts = questions.map(([question]) => question);

/** Returns the valid answers, with other answers to one question. */
function answersWith(question: string, ...others: string[]): string[] {
  return questions.flatMap(([text, answer]) => (text === question ? others : [answer]));
}

/** Returns the first words of the questions of a run. */
const asked = (err: string) =>
  promptsIn(err).map((line) => texts.find((text) => line.startsWith(text)) ?? line);

it('asks all questions again, with the answers as defaults, after a failed check', async () => {
  const { setup, path, sandbox } = await openFolder('not set');
  const answers = answersWith('Password of the catalogue account', 'wrong');
  const again = [...answersWith('Password of the catalogue account', account.password)].fill(
    '',
    0,
    2,
  );
  const { err } = await expectEnd(setup([...answers, '', ...again]), 0);
  expect(asked(err)).toEqual([
    ...texts,
    expect.stringMatching(/1 critical.* Enter to change/),
    ...texts,
  ]);
  expect(err).not.toContain(account.password);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const [registered, ...others] = sandbox.subscriptions();
  expect(others).toEqual([]);
  expect(registered).toMatchObject({ type: 'pull', events: ['created'] });
  expect(registered?.filter).toMatch(/^Collection\/Name eq 'SENTINEL-2' and OData\.CSC\.Inter/);
});

it('asks again in the next run after Ctrl-C, and registers nothing before', async () => {
  const { setup, sandbox } = await openFolder('not set');
  const wrong = answersWith('Password of the catalogue account', 'wrong');
  await expectEnd(setup([...wrong, ctrlC]), 1, /critical/);
  expect(sandbox.subscriptions()).toEqual([]);
  const { err } = await expectEnd(setup(['pull', ctrlC]), 1);
  expect(asked(err)).toEqual(texts.slice(0, 2));
  expect(err).toContain(`[${account.username}]`);
});

describe('setup --pull with mistakes', () => {
  it('asks again before it registers what the catalogue would refuse', async () => {
    const { setup, sandbox } = await openFolder();
    const all = ['--pull', '--filter', 'Online eq true', '--event', 'deleted'];
    const again = [...Array(9).fill(''), 'modified', '', ''];
    const { err } = await expectEnd(setup(['', '', '', '', ...again], ...all), 0);
    expect(err).toMatch(/The filter is not valid for DeletedProducts.*Enter to change answers/s);
    expect(sandbox.subscriptions()).toMatchObject([{ events: ['modified'] }]);
  });

  it('asks before it replaces a registered subscription', async () => {
    const { setup, sandbox } = await openFolder('not set');
    await expectEnd(setup([...answersWith('', '')]), 0);
    const again = await setup(['', '', '', '', 'S1', '', '', '', '', '', '', 'n']);
    expect(again.err).toContain('already registered: default');
    expect(again.out).toMatch(/^~ replace +default$/m);
    expect(again.err).toMatch(/Apply these changes\? \[y\/N\]/);
    expect(sandbox.subscriptions()).toMatchObject([
      { filter: expect.stringContaining('SENTINEL-2') },
    ]);
  });

  it('neither doctor nor start demand a certificate before the first registration', async () => {
    const { setup, written, folder: workingDir } = await openFolder('not set');
    await setup([...answersWith('Password of the catalogue account', 'wrong'), ctrlC]);
    const env = written();
    const { out } = await runCommand('doctor', { env, workingDir });
    expect(out).toMatch(/^unknown +endpoint/m);
    expect(out).not.toMatch(/EARSHOT_TLS|EARSHOT_PUBLIC_URL is/);
    const start = startCommand('start', { env, workingDir });
    await expect.poll(start.err).toContain('ready to read queues');
    start.stop();
    expect((await start.ended).err).toContain('no subscription is registered yet: `earshot setup`');
  });
});
