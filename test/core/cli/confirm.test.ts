/** The confirmation before a change: answers that agree, answers that decline, and no terminal. */
import { describe, expect, it } from 'vitest';
import { confirm } from '../../../src/core/cli/flags.ts';
import { exitCodeOf } from '../../../src/core/cli/run.ts';
import { AppError, errorText } from '../../../src/core/terms/app-error.ts';
import { openAccountContext } from '../../features/subscriptions/account-context.ts';
import { expectEnd } from '../../helpers/fake-io.ts';

/** Asks once and returns the result; null simulates a missing terminal. */
async function confirmWith(answer: string | null, flags: { yes?: boolean | undefined } = {}) {
  const questions: string[] = [];
  const ask = async (question: string) => {
    questions.push(question);
    return answer;
  };
  const error = await confirm({ ask }, 'Delete it?', flags).then(
    () => undefined,
    (refusal: unknown) => refusal,
  );
  if (error !== undefined && !(error instanceof AppError)) throw error;
  return { error, questions };
}

describe('a confirmation', () => {
  it.each(['y', 'Y', 'yes', 'YES', ' yes '])('accepts %j as yes', async (answer) => {
    const { error, questions } = await confirmWith(answer);
    expect(error).toBeUndefined();
    expect(questions).toEqual(['Delete it? [y/N] ']);
  });

  it.each(['', 'n', 'no', 'ye', 'yess', 'y n', 'ja', '1', 'true', 'y\nn'])(
    'takes %j as no: nothing changes, and the command fails',
    async (answer) => {
      const { error } = await confirmWith(answer);
      expect(error).toMatchObject({ code: 'cancelled', text: 'Nothing was changed.' });
      expect(exitCodeOf(error?.code ?? 'internal')).toBe(1);
    },
  );

  it('without a terminal is a usage error that says what to add', async () => {
    const { error } = await confirmWith(null);
    expect(error?.code).toBe('usage');
    expect(errorText(error)).toMatch(/needs a terminal.*Nothing was changed.*--yes/);
  });

  it('is skipped with --yes', async () => {
    expect(await confirmWith(null, { yes: true })).toEqual({ error: undefined, questions: [] });
    for (const yes of [false, undefined]) {
      expect((await confirmWith('y', { yes })).questions).toHaveLength(1);
    }
  });
});

it('a command with a confirmation changes nothing at the catalogue before the user agrees', async () => {
  const { run, sandbox } = await openAccountContext();
  const register = ['register', '--event', 'created'];
  const nobody = await expectEnd(run(register), 2, '--yes');
  const refused = await expectEnd(
    run(register, { answers: ['n'] }),
    1,
    'Apply these changes? [y/N]',
  );
  expect(refused.err).toContain('earshot: Nothing was changed.');
  // The plan was printed before the question.
  for (const { out } of [nobody, refused]) expect(out).toContain('create');
  expect(sandbox.subscriptions()).toEqual([]);
  expect((await run(register, { answers: ['y'] })).code).toBe(0);
  expect(sandbox.subscriptions()).toHaveLength(1);
  await expectEnd(run('subscriptions delete default', { answers: [''] }), 1);
  expect(sandbox.subscriptions()).toHaveLength(1);
});
