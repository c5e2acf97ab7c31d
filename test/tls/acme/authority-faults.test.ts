/** An authority that fails at any step: the user is told, the next try is planned, nothing is served. */
import { expect, it } from 'vitest';
import { errorText, isAppError } from '../../../src/domain/app-error.ts';
import { failure, failureOf, openOrders, orderAtStub } from '../../helpers/order-at-stub.ts';
import type { Fault, Step } from '../../helpers/stub-authority.ts';

const minuteUs = 60_000_000;

const body =
  (text: unknown): Fault =>
  (answer) => ({ ...answer, body: text });

/** Whatever the step: the answer does not arrive, or is a refusal. */
const refused: Fault[] = [
  failure(500),
  failure(503, { 'retry-after': '60', 'content-type': 'text/html' }),
  failure(429),
  failure(404),
  () => ({ status: 302, headers: {}, body: '' }),
  () => ({ status: 307, headers: { location: '?again' }, body: '' }),
  () => 'reset',
  body('x'.repeat(2 ** 21)),
];

/** Where the answer's content counts: it is something else. */
const mistaken: Fault[] = [
  body('<!doctype html><title>Welcome to the hotel</title>'),
  body('{"status": "val'),
  body(''),
  body(null),
  body({}),
  body([]),
  body(17),
  body({ status: 1, newOrder: 2, authorizations: 'x', finalize: null, challenges: {} }),
];

/** These steps are asked for in the same way as `newOrder`. */
const some = [failure(503), () => 'reset' as const];

const cases: [Step, Fault[]][] = [
  ['directory', [...refused, ...mistaken]],
  // An answer to HEAD has no body.
  ['nonce', [...some, (answer) => ({ ...answer, headers: {} })]],
  ['newAccount', [...some, (answer) => ({ ...answer, headers: {} })]],
  ['newOrder', [...refused, ...mistaken, (answer) => ({ ...answer, headers: {} })]],
  ['order', [...some, ...mistaken]],
  ['authorization', [...some, ...mistaken]],
  ['challenge', some],
  ['finalize', [...some, ...mistaken]],
  ['certificate', [...some, ...mistaken]],
];

it.each(cases)(
  '%s: every fault ends in a sentence and a later try',
  async (step, faults) => {
    const unproved = step === 'authorization' || step === 'challenge';
    const { authority, clock } = await orderAtStub({ unproved });
    for (const fault of faults) {
      authority.break(step, fault);
      const { look, served, world } = openOrders(authority, clock);
      const error = await failureOf(look());
      expect(isAppError(error, 'unavailable') || isAppError(error, 'configuration')).toBe(true);
      expect(errorText(error)).toMatch(
        /^localhost:\d+ .*\. \(\w+: .+\)$|^what the authority has issued/,
      );
      expect(errorText(error)).not.toMatch(
        /undefined|Cannot |Error:|not a function|\[object|\p{Cc}/u,
      );
      expect(errorText(error).length).toBeLessThan(1_000);
      expect(served).toEqual([]);
      const state = await world.states.read();
      expect(state).toMatchObject({ failures: 1, lastFailure: { message: error.message } });
      expect(state.nextTryAtUs).toBeGreaterThanOrEqual(clock.us + minuteUs);
    }
  },
  60_000,
);

it.each(cases.map(([step]) => step))('%s that works again: the next try succeeds', async (step) => {
  const unproved = step === 'authorization' || step === 'challenge';
  const { authority, clock, look, world } = await orderAtStub({ unproved });
  authority.break(step, failure(503));
  await failureOf(look());
  clock.us = (await world.states.read()).nextTryAtUs ?? 0;
  // What was placed by now is asked for first.
  authority.break('order', failure(503));
  await failureOf(look());
  const { nextTryAtUs } = await world.states.read();
  authority.mend(step);
  authority.mend('order');
  expect(await look()).toMatchObject({ outcome: 'waiting', untilUs: nextTryAtUs });
  clock.us = nextTryAtUs ?? 0;
  expect(await look()).toMatchObject({ outcome: 'renewed' });
  expect(await world.states.read()).toMatchObject({ failures: 0, nextTryAtUs: null });
  // What had been placed was taken up.
  expect(authority.count('newOrder')).toBe(step === 'newOrder' ? 3 : 1);
});
