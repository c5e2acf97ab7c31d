/** Mistakes in the answers of `earshot setup`. */
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
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openPullAccount } from '../pull/pull-account.ts';
import { account } from '../subscriptions/account-context.ts';

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
  return { sandbox, setup, path, workingDir };
}

it('asks all questions again, with the answers as defaults, after a failed check', async () => {
  const { setup, path, sandbox } = await openFolder();
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

it('asks again only for the subscription in the next run after Ctrl-C, and registers nothing before', async () => {
  const { setup, sandbox } = await openFolder();
  const wrong = answersWith('Password of the catalogue account', 'wrong');
  await expectEnd(setup([...wrong, ctrlC]), 1, /critical/);
  expect(sandbox.subscriptions()).toEqual([]);
  const { err } = await expectEnd(setup([ctrlC]), 1);
  expect(asked(err)).toEqual(['Pull (earshot reads a queue) or push']);
});

describe('setup', () => {
  it('asks again before it registers what the catalogue would refuse', async () => {
    const { setup, sandbox, workingDir } = await openFolder();
    writeFileSync(join(workingDir, 'password'), account.password);
    const flags = ['--pull', '--account-username', account.username, '--filter', 'Online eq true'];
    const all = [...flags, '--account-password-file', 'password', '--event', 'deleted'];
    const again = [...Array(9).fill(''), 'modified', '', ''];
    const { err } = await expectEnd(setup(['', '', ...again], {}, ...all), 0);
    expect(err).toMatch(/The filter is not valid for DeletedProducts.*Enter to change answers/s);
    expect(sandbox.subscriptions()).toMatchObject([{ events: ['modified'] }]);
  });

  it('asks before it replaces a registered subscription', async () => {
    const { setup, sandbox } = await openFolder();
    await expectEnd(setup([...answersWith('', '')]), 0);
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
    await setup([...answersWith('Password of the catalogue account', 'wrong'), ctrlC]);
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
