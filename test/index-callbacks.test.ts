/** Callbacks of a user may fail; the receiver's responses stay the same. */
import { expect, it } from 'vitest';
import type { Logger, Outcome } from '../src/index.ts';
import { notification } from './helpers/deliveries.ts';
import { serveApp } from './helpers/mounted-receiver.ts';

const failures: [string, () => never | Promise<never>][] = [
  ['throws', () => raise()],
  ['rejects', async () => raise()],
];

function raise(): never {
  throw new Error('a failure of the user');
}

function recordingLog(): { log: Logger; errors: object[] } {
  const errors: object[] = [];
  const none = () => undefined;
  const error = (fields: object, message: string) => void errors.push({ ...fields, message });
  return { log: { debug: none, info: none, warn: none, error }, errors };
}

/** Requests for each response that causes a log line or an outcome. */
async function answersOf({ send }: Awaited<ReturnType<typeof serveApp>>): Promise<number[]> {
  const body = JSON.stringify(notification(1));
  const statuses: number[] = [];
  for (const sent of [
    { body },
    { body },
    { body: '{"no":"notification"}' },
    { body, auth: 'other:wrong' },
    { body: 'x'.repeat(2 ** 21) },
    { method: 'GET' },
  ]) {
    statuses.push((await send(sent)).status);
  }
  return statuses;
}

const answers = [200, 200, 400, 401, 413, 200];
const mount: Parameters<typeof serveApp>[0] = (app, receiver) => void app.route('/', receiver);

it.each(failures)('an onOutcome that %s changes no response, and is logged', async (...row) => {
  const [, fail] = row;
  const { log, errors } = recordingLog();
  const outcomes: Outcome[] = [];
  const onOutcome = (outcome: Outcome) => {
    outcomes.push(outcome);
    return fail();
  };
  const context = await serveApp(mount, { onOutcome, log });
  expect(await answersOf(context)).toEqual(answers);
  expect(outcomes).toEqual(['stored', 'duplicate', 'rejected', 'unauthorized', 'too_large']);
  expect(errors).toEqual(
    outcomes.map(() => ({
      message: 'onOutcome failed',
      err: expect.objectContaining({ message: 'a failure of the user' }),
    })),
  );
  expect(await context.store.counts()).toEqual({
    notifications: 1,
    duplicates: 1,
    quarantined: 1,
  });
});

it.each(failures)('a log that %s changes no response', async (_name, fail) => {
  let lines = 0;
  const line = () => {
    lines += 1;
    return fail();
  };
  const log = { debug: line, info: line, warn: line, error: line };
  const context = await serveApp(mount, { log, onOutcome: fail });
  expect(await answersOf(context)).toEqual(answers);
  expect(lines).toBe(10);
  expect(await context.store.counts()).toEqual({ notifications: 1, duplicates: 1, quarantined: 1 });
});
