/** Malicious answers: the only error that any answer of the catalogue can cause is an AppError. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAccessTokens } from '../../src/admin/session.ts';
import { errorText, isAppError } from '../../src/core/terms/app-error.ts';
import { type Answer, startServer } from '../core/http/answering-server.ts';
import {
  address,
  errorOf,
  id,
  newSubscription,
  shown,
  startStandIn,
} from './catalogue-stand-in.ts';

const depth = 50_000;
const anyJson = fc.jsonValue({ maxDepth: 4 });
const fieldsOf = (...names: string[]) => fc.dictionary(fc.constantFrom(...names), anyJson);
const someFields = fieldsOf(...Object.keys(shown), 'LastNotificationDate');
const subscriptionLike = someFields.map((fields) => ({ ...shown, ...fields }));
const faults = fc.array(fieldsOf('type', 'loc', 'msg', 'input'));
const detail = fc.oneof(anyJson, fieldsOf('message', 'request_id'), faults);
const errorLike = fc.record({ detail });
const body = fc.oneof(anyJson, subscriptionLike, fc.array(subscriptionLike), errorLike);
const status = fc.constantFrom(200, 201, 204, 302, 400, 401, 403, 404, 405, 409, 418, 422, 500);

/** A client whose server gives `current.answer`. */
async function startHostile() {
  const current: { answer: Answer } = { answer: {} };
  // Another test covers retries, which would take too long here.
  const timing = { retryDelayMs: 0, totalTimeoutMs: 5_000 };
  const { client } = await startStandIn(() => current.answer, timing);
  const calls = [
    () => client.list(),
    () => client.create(newSubscription),
    () => client.edit(id, { credentials: address.credentials }),
    () => client.delete(id),
  ];
  const callAll = async (answer: Answer) => {
    current.answer = answer;
    for (const call of calls) {
      const outcome: unknown = await call().catch((error: unknown) => error);
      if (outcome instanceof Error && !isAppError(outcome)) throw outcome;
    }
  };
  return { client, current, callAll };
}

const json = { 'Content-Type': 'application/json' };

describe('an answer causes at most an AppError', () => {
  it('with any JSON or text, and any status', async () => {
    const { callAll } = await startHostile();
    const text = fc.string({ unit: 'binary', maxLength: 300 }).map((words) => words.toWellFormed());
    await fc.assert(
      fc.asyncProperty(status, fc.oneof({ arbitrary: body, weight: 2 }, text), (code, any) =>
        callAll({ status: code, body: any, headers: json }),
      ),
      { numRuns: 90 },
    );
  });

  it.each([
    ['arrays', `${'['.repeat(depth)}${']'.repeat(depth)}`],
    ['objects', `${'{"detail":'.repeat(depth)}1${'}'.repeat(depth)}`],
  ])('with fifty thousand levels of %s', async (_title, text) => {
    const { callAll } = await startHostile();
    for (const code of [200, 400]) await callAll({ status: code, body: text, headers: json });
  });

  it('with a megabyte of text, and the message shows little of it', async () => {
    const { client, current } = await startHostile();
    current.answer = { status: 422, body: { detail: 'x'.repeat(1_000_000) } };
    expect(errorText(await errorOf(client.create(newSubscription))).length).toBeLessThan(4_200);
  });
});

it('the identity provider causes at most a failed login, with any JSON and any status', async () => {
  const current: { answer: Answer } = { answer: {} };
  const { url } = await startServer(() => current.answer);
  const login = () =>
    createAccessTokens({
      account: {
        ...{ kind: 'password', tokenUrl: `${url}/token`, clientId: 'a-client' },
        ...{ username: 'me', password: 'password', totp: undefined },
      },
      ...{ dataDir: '/dev/null/missing', nowUs: () => 0, fetch },
    }).get();
  const names = ['access_token', 'token_type', 'expires_in', 'refresh_token', 'refresh_expires_in'];
  const grantLike = fc.dictionary(
    fc.constantFrom(...names, 'id_token', 'scope', 'error', 'error_description'),
    fc.oneof(anyJson, fc.constant('bearer')),
  );
  await fc.assert(
    fc.asyncProperty(status, fc.oneof(anyJson, grantLike), async (code, any) => {
      current.answer = { status: code, body: any };
      const outcome: unknown = await login().catch((error: unknown) => error);
      if (outcome instanceof Error && !isAppError(outcome)) throw outcome;
    }),
    { numRuns: 100 },
  );
});
