/** After a mistake in `earshot setup`, the next run asks only what was missing or has failed. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  ctrlC,
  expectEnd,
  type FakeIoOptions,
  promptsIn,
  runCommand,
  startCommand,
} from '../../helpers/fake-io.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openPullAccount } from '../pull/pull-account.ts';
import { account, openAccountContext } from '../subscriptions/account-context.ts';

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

/** Opens an empty folder; `run` sets up pull with answers. */
async function openFolder() {
  const { sandbox, run, env: all } = await openPullAccount();
  await sandbox.publishNow(20);
  const { EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWORD, ...env } = all;
  const workingDir = temporaryDirectory();
  const dataDir = join(workingDir, 'data');
  const path = join(workingDir, '.env');
  const setup = (answers: string[], more: Partial<FakeIoOptions> = {}, ...flags: string[]) => {
    const written = existsSync(path) ? parseEnv(readFileSync(path, 'utf8')) : {};
    const variables = { ...env, EARSHOT_DATA_DIR: dataDir, ...(written as Record<string, string>) };
    return run(['setup', '--no-stay', ...flags], { env: variables, workingDir, answers, ...more });
  };
  return { sandbox, setup, path, file: join(dataDir, 'setup.json'), workingDir };
}

const credentials = texts.slice(1, 4);

const unreachable: typeof fetch = async (input, init) => {
  const url = input instanceof Request ? input.url : String(input);
  if (!url.includes('/token')) return fetch(input, init);
  throw new TypeError('fetch failed', { cause: Object.assign(new Error(), { code: 'ENOTFOUND' }) });
};

describe('after a mistake, setup asks again only', () => {
  it.each<{
    mistake: string;
    answers: string[];
    more?: Partial<FakeIoOptions>;
    message: RegExp;
    /** Expected in the output of the checks. */
    check?: RegExp;
    /** Questions and answers of the next run. */
    next: readonly (readonly [string, string])[];
  }>([
    {
      mistake: 'the account after a wrong password',
      answers: answersWith('Password of the catalogue account', 'wrong'),
      message: /Your answers are stored\. To continue: `earshot setup --no-stay`\./,
      next: credentials.map((text) => [text, text.startsWith('Password') ? account.password : '']),
    },
    {
      mistake: 'nothing after an unreachable identity provider',
      answers: answersWith('', ''),
      more: { fetch: unreachable },
      message: /1 critical.* Nothing was registered/,
      check: /unavailable.*ENOTFOUND.*Check the network and the DNS/s,
      next: [],
    },
    {
      mistake: 'from the password after Ctrl-C at the password',
      answers: answersWith('Password of the catalogue account', ctrlC),
      message: /before the registration\. Your answers are stored\. To continue:/,
      next: questions.slice(2, -1),
    },
    {
      mistake: 'what follows after an explained answer, a valid one, and Ctrl-C',
      answers: answersWith('Area:', 'alps.geojson', '-170,-56,170,80', ctrlC),
      message: /alps\.geojson cannot be read/,
      next: questions.slice(7, -1),
    },
    {
      mistake: 'nothing after Ctrl-C at the end',
      answers: answersWith('Enter to continue', ctrlC),
      message: /To continue:/,
      next: [],
    },
  ])('$mistake', async ({ answers, more, message, check = /^/, next }) => {
    const { setup, file, path, sandbox } = await openFolder();
    const { err, out } = await expectEnd(setup(answers, more), 1, message);
    expect(out).toMatch(check);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(err).not.toContain(account.password);
    if (existsSync(path)) expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(sandbox.subscriptions()).toEqual([]);

    const again = await expectEnd(setup([...next.map(([, answer]) => answer), '']), 0);
    expect(asked(again.err)).toEqual([...next.map(([text]) => text), 'Enter to continue']);
    expect(existsSync(file)).toBe(false);
    const [registered, ...others] = sandbox.subscriptions();
    expect(others).toEqual([]);
    expect(registered).toMatchObject({ type: 'pull', events: ['created'] });
    expect(registered?.filter).toMatch(/^Collection\/Name eq 'SENTINEL-2' and OData\.CSC\.Inter/);
  });

  it('all questions, before it registers what the catalogue would refuse', async () => {
    const { setup, sandbox, workingDir } = await openFolder();
    writeFileSync(join(workingDir, 'password'), account.password);
    const flags = ['--pull', '--account-username', account.username, '--filter', 'Online eq true'];
    const all = [...flags, '--account-password-file', 'password', '--event', 'deleted'];
    const again = [...Array(9).fill(''), 'modified', '', ''];
    const { err } = await expectEnd(setup(['', '', ...again], {}, ...all), 0);
    expect(err).toMatch(/The filter is not valid for DeletedProducts.*Enter to change answers/s);
    expect(sandbox.subscriptions()).toMatchObject([{ events: ['modified'] }]);
  });

  it('nothing with --yes, which needs no terminal to continue', async () => {
    const { setup, workingDir, sandbox } = await openFolder();
    const password = join(workingDir, 'password');
    writeFileSync(password, 'wrong');
    const flags = ['--pull', '--account-username', account.username, '--collection', 'S2', '--yes'];
    const failed = setup([], {}, ...flags, '--account-password-file', password);
    await expectEnd(failed, 1, 'To continue: `earshot setup --yes --no-stay`.');
    writeFileSync(password, account.password);
    await expectEnd(setup([], {}, '--yes'), 0);
    expect(sandbox.subscriptions()).toHaveLength(1);
  });

  it('before it replaces a registered subscription, and before one without matching products', async () => {
    const { setup, sandbox } = await openFolder();
    const refused = await setup([...answersWith('Collection,', 'S22', ''), 'n']);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.err).toMatch(/matches 0 products .*\nApply these changes\? \[y\/N\]/s);
    expect(sandbox.subscriptions()).toEqual([]);
    await expectEnd(setup(['n', '', '', '', '', 'S2']), 0);
    const again = await setup(['S1', '', '', '', '', '', '', 'n']);
    expect(again.err).toContain('already registered: default');
    expect(again.out).toMatch(/^~ replace +default$/m);
    expect(again.err).toMatch(/Apply these changes\? \[y\/N\]/);
    expect(sandbox.subscriptions()).toMatchObject([
      { filter: expect.stringContaining('SENTINEL-2') },
    ]);
  });

  it('neither doctor nor start demand a certificate before the first registration', async () => {
    const { setup, path, workingDir } = await openFolder();
    await setup(answersWith('Password of the catalogue account', 'wrong'));
    const env = parseEnv(readFileSync(path, 'utf8')) as Record<string, string>;
    const { out } = await runCommand('doctor', { env, workingDir });
    expect(out).toMatch(/^unknown +endpoint/m);
    expect(out).not.toMatch(/EARSHOT_TLS|EARSHOT_PUBLIC_URL is/);
    const start = startCommand('start', { env, workingDir });
    await expect.poll(start.err).toContain('ready to read queues');
    start.stop();
    expect((await start.ended).err).toContain('no subscription is registered yet: `earshot setup`');
  });
});

it('with push, setup asks again only for the address after a port in use, and names its variable', async () => {
  const { env: all, sandbox, run } = await openAccountContext();
  await sandbox.publishNow(20);
  const workingDir = temporaryDirectory();
  const { EARSHOT_PUBLIC_URL = '', EARSHOT_TLS_CERT = '', EARSHOT_TLS_KEY = '', ...others } = all;
  const { EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWORD, EARSHOT_LISTEN, ...env } = others;
  env.EARSHOT_DATA_DIR = join(workingDir, 'data');
  const used = new URL(EARSHOT_PUBLIC_URL).port;
  const port = await freePort();
  const answers = [
    ...['push', `localhost:${port}`, 'files', EARSHOT_TLS_CERT, 'none.pem', EARSHOT_TLS_KEY],
    ...[`127.0.0.1:${used}`, account.username, account.password, '', 'S2', '', '', '', '', '', ''],
  ];
  const argv = ['setup', '--no-stay'];
  const failed = await expectEnd(run(argv, { env, workingDir, answers }), 2, 'EARSHOT_LISTEN');
  expect(failed.err).toContain('none.pem cannot be read');
  const written = parseEnv(readFileSync(join(workingDir, '.env'), 'utf8'));
  const next = [`127.0.0.1:${port}`, ''];
  const options = { env: written as Record<string, string>, workingDir, answers: next };
  const done = await expectEnd(run(argv, options), 0);
  expect(promptsIn(done.err)).toEqual([
    `Address of the public listener [127.0.0.1:${used}]: `,
    expect.stringMatching(/^Enter to continue/),
  ]);
  expect(sandbox.subscriptions()).toMatchObject([{ type: 'push' }]);
});
