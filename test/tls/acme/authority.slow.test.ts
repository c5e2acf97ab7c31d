/** Refusals of an authority: the user gets the reason, but no internals. */

import { describe, expect, it } from 'vitest';
import { errorText, isAppError } from '../../../src/domain/app-error.ts';
import { createAuthority, createKey } from '../../../src/tls/acme/authority.ts';
import {
  failure,
  failureOf,
  openOrders,
  orderAtStub,
  refusal,
} from '../../helpers/order-at-stub.ts';
import type { Fault, Step } from '../../helpers/stub-authority.ts';

const minuteUs = 60_000_000;

/** Returns the message after a refused order. */
async function messageOf(fault: Fault): Promise<string> {
  const { authority, check } = await orderAtStub();
  authority.break('newOrder', fault);
  return errorText(await failureOf(check()));
}

describe('a refusal', () => {
  it.each([
    ['rateLimited', /received too many requests/],
    ['caa', /CAA record of earshot\.example\.org does not allow/],
    ['rejectedIdentifier', /Correct the name in EARSHOT_PUBLIC_URL/],
    ['unsupportedIdentifier', /Correct the name in EARSHOT_PUBLIC_URL/],
    ['userActionRequired', /requires an action first/],
    ['externalAccountRequired', /Set EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY/],
    ['invalidContact', /Correct EARSHOT_ACME_EMAIL/],
    ['unsupportedContact', /Correct EARSHOT_ACME_EMAIL/],
    ['serverInternal', /has an internal error/],
    ['dns', /No address was found for earshot\.example\.org/],
    ['badCSR', /refused the order for earshot\.example\.org/],
    ['somethingNew', /refused the order for earshot\.example\.org/],
  ])('%s is explained and includes the text of the authority', async (type, expected) => {
    const message = await messageOf(refusal(type, { detail: 'Ask again in May.' }));
    expect(message).toMatch(expected);
    expect(message).toMatch(new RegExp(`\\(${type}: Ask again in May\\.\\)$`));
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'of type %s is handled like any other',
    async (type) => {
      const { authority, check, context } = await orderAtStub();
      authority.break('newOrder', refusal(type));
      expect(errorText(await failureOf(check()))).toMatch(/refused the order/);
      expect(await context.states.read()).toMatchObject({ failures: 1 });
    },
  );

  it('that is very long or has control characters is shortened and cleaned', async () => {
    const detail = `\u001b[2J\r\n\u202e${'long '.repeat(10_000)}`;
    const message = await messageOf(refusal('caa', { detail }));
    expect(message).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(message).toContain('long long');
    expect(message.length).toBeLessThan(700);
    expect((await messageOf(refusal('x'.repeat(100_000)))).length).toBeLessThan(700);
  });

  it('includes the reasons for each name', async () => {
    const subproblems = [{ type: 'urn:ietf:params:acme:error:caa', detail: 'It is the CAA.' }];
    const body = { type: 'urn:ietf:params:acme:error:compound', detail: 'See below.', subproblems };
    const message = await messageOf(() => ({ status: 403, headers: {}, body }));
    expect(message).toMatch(/\(compound: See below\. It is the CAA\.\)$/);
  });

  it.each([
    ['a list', []],
    ['a detail that is not text', { type: 17, detail: {} }],
    ['null', null],
  ])('whose body is %s is reported by its status', async (_title, body) => {
    const message = await messageOf(() => ({ status: 403, headers: {}, body }));
    expect(message).toMatch(/answered with status 403\)$/);
  });
});

describe('a pause requested by the authority', () => {
  const inTwoHours = { 'retry-after': '7200' };
  const untilDate = {
    date: 'Fri, 01 May 2020 12:00:00 GMT',
    'retry-after': 'Fri, 01 May 2020 14:00:00 GMT',
  };

  it.each([
    ['429, in seconds', failure(429, inTwoHours), 120],
    ['503, in seconds', failure(503, inTwoHours), 120],
    ['429, as a date of the clock of the authority', failure(429, untilDate), 120],
    ['rateLimited', refusal('rateLimited', { status: 429, headers: inTwoHours }), 120],
    ['429, shorter than the minimum', failure(429, { 'retry-after': '1' }), 1],
    ['429, of a thousand years', failure(429, { 'retry-after': '31557600000' }), 7 * 24 * 60],
    ['429, in the past', failure(429, { 'retry-after': 'Fri, 01 May 1970 14:00:00 GMT' }), 1],
    ['429, that is invalid', failure(429, { 'retry-after': 'soon' }), 1],
    ['429, negative', failure(429, { 'retry-after': '-5' }), 1],
  ])('%s, is observed', async (_title, fault, minutes) => {
    const { authority, check, clock } = await orderAtStub();
    authority.break('newOrder', fault);
    const begunUs = clock.us;
    await failureOf(check());
    const requestCount = authority.requests.length;
    clock.us = begunUs + minutes * minuteUs - 1;
    expect(await check()).toMatchObject({
      outcome: 'waiting',
      untilUs: begunUs + minutes * minuteUs,
    });
    expect(authority.requests).toHaveLength(requestCount);
    authority.repair('newOrder');
    clock.us += 1;
    expect(await check()).toMatchObject({ outcome: 'renewed' });
  });
});

describe('an authority that repeats', () => {
  it('refusals of nonces is given up after a while', async () => {
    const { authority, check } = await orderAtStub();
    authority.break('newOrder', refusal('badNonce', { detail: 'Not this one.' }));
    expect(errorText(await failureOf(check()))).toMatch(/refused .*Not this one\.\)$/);
    expect(authority.count('newOrder')).toBeLessThan(50);
  });

  it('some refusals of nonces still issues a certificate', async () => {
    const { authority, check } = await orderAtStub();
    for (const step of ['newAccount', 'newOrder', 'finalize'] as const) {
      authority.break(step, refusal('badNonce'), 15);
    }
    expect(await check()).toMatchObject({ outcome: 'renewed' });
  });

  it('answers without the account URL is given up after a while', async () => {
    const { authority, check } = await orderAtStub();
    authority.break('newAccount', ({ headers: { location: _, ...headers }, body }) => ({
      status: 200,
      headers,
      body,
    }));
    expect(errorText(await failureOf(check()))).toMatch(/too many requests to /);
    expect(authority.requests.length).toBeLessThan(150);
  });

  it('no answer at all is given up after the timeout', async () => {
    const { authority } = await orderAtStub();
    authority.break('directory', () => 'silence');
    const asked = createAuthority({
      directoryUrl: authority.directoryUrl,
      extraCaPem: authority.caPem,
      signal: new AbortController().signal,
      accountKey: await createKey(),
      accountUrl: null,
      eab: undefined,
      requestTimeoutMs: 200,
    });
    await expect(asked.readDirectory()).rejects.toMatchObject({
      type: 'unreachable',
      detail: `${new URL(authority.directoryUrl).origin}: it did not answer in time`,
    });
  });
});

describe('an authority', () => {
  it('with an untrusted certificate is distinguished from one that is down', async () => {
    const { authority, clock } = await orderAtStub();
    const { check } = openOrders(authority, clock, { settings: { extraCaPem: undefined } });
    const { text } = await failureOf(check());
    expect(text).toMatch(/cannot be reached.*EARSHOT_ACME_CA.*no trusted HTTPS connection/);
    expect(authority.requests).toEqual([]);
  });

  it('receives the agreement, the e-mail address and the account binding, but no secret', async () => {
    const eab = { keyId: 'kid-1', hmacKey: 'c2VjcmV0LXNlY3JldC1zZWNyZXQ' };
    const settings = { email: 'me@example.org', eab };
    const { authority, check, context, log } = await orderAtStub({}, { settings });
    authority.break('newOrder', refusal('caa'));
    const error = await failureOf(check());
    const [asked] = authority.requests.filter(({ step }) => step === 'newAccount');
    expect(asked?.payload).toMatchObject({
      termsOfServiceAgreed: true,
      contact: ['mailto:me@example.org'],
      externalAccountBinding: { signature: expect.any(String) },
    });
    const key = (await context.folder.readAccount(authority.directoryUrl))?.key ?? 'none';
    const keyText = key.split('\n')[1] ?? 'none';
    expect(keyText).toMatch(/^[\w+/=]{60,}$/);
    const said = [errorText(error), String(error.cause), JSON.stringify([log, authority.requests])];
    expect(said.join('\n')).not.toContain(eab.hmacKey);
    expect(said.join('\n')).not.toContain(keyText);
  });

  it.each(['../../certificate', 'a/b', '', 'x'.repeat(201), 'tls-alpn-01.json'])(
    'that sends the token %j is refused, and no file is written',
    async (token) => {
      const { check } = await orderAtStub({ unproved: true, token });
      const error = await failureOf(check());
      expect(error).toMatchObject({ code: 'unavailable' });
      expect(errorText(error)).toMatch(/\(malformedAnswer: /);
    },
  );
});

const body =
  (text: unknown): Fault =>
  (answer) => ({ ...answer, body: text });

/** Faults of every step: no answer, or a refusal. */
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

/** Faults of steps with a body: wrong content. */
const invalid: Fault[] = [
  body('<!doctype html><title>Welcome to the hotel</title>'),
  body('{"status": "val'),
  body(''),
  body(null),
  body({}),
  body([]),
  body(17),
  body({ status: 1, newOrder: 2, authorizations: 'x', finalize: null, challenges: {} }),
];

/** A selection, for steps that are requested like `newOrder`. */
const some = [failure(503), () => 'reset' as const];

const cases: [Step, Fault[]][] = [
  ['directory', [...refused, ...invalid]],
  // An answer to HEAD has no body.
  ['nonce', [...some, (answer) => ({ ...answer, headers: {} })]],
  ['newAccount', [...some, (answer) => ({ ...answer, headers: {} })]],
  ['newOrder', [...refused, ...invalid, (answer) => ({ ...answer, headers: {} })]],
  ['order', [...some, ...invalid]],
  ['authorization', [...some, ...invalid]],
  ['challenge', some],
  ['finalize', [...some, ...invalid]],
  ['certificate', [...some, ...invalid]],
];

it.each(cases)(
  '%s: every fault results in a message and a later attempt',
  async (step, faults) => {
    const unproved = step === 'authorization' || step === 'challenge';
    const { authority, clock } = await orderAtStub({ unproved });
    for (const fault of faults) {
      authority.break(step, fault);
      const { check, served, context } = openOrders(authority, clock);
      const error = await failureOf(check());
      expect(isAppError(error, 'unavailable') || isAppError(error, 'configuration')).toBe(true);
      expect(errorText(error)).toMatch(
        /^(The answer of )?localhost:\d+ .*\. \(\w+: .+\)$|^the issued certificate/,
      );
      expect(errorText(error)).not.toMatch(
        /undefined|Cannot |Error:|not a function|\[object|\p{Cc}/u,
      );
      expect(errorText(error).length).toBeLessThan(1_000);
      expect(served).toEqual([]);
      const state = await context.states.read();
      expect(state).toMatchObject({ failures: 1, lastFailure: { message: error.message } });
      expect(state.nextTryAtUs).toBeGreaterThanOrEqual(clock.us + minuteUs);
    }
  },
  60_000,
);

it.each(cases.map(([step]) => step))('%s: the attempt after a repair succeeds', async (step) => {
  const unproved = step === 'authorization' || step === 'challenge';
  const { authority, clock, check, context } = await orderAtStub({ unproved });
  authority.break(step, failure(503));
  await failureOf(check());
  clock.us = (await context.states.read()).nextTryAtUs ?? 0;
  // An order that was placed is requested first.
  authority.break('order', failure(503));
  await failureOf(check());
  const { nextTryAtUs } = await context.states.read();
  authority.repair(step);
  authority.repair('order');
  expect(await check()).toMatchObject({ outcome: 'waiting', untilUs: nextTryAtUs });
  clock.us = nextTryAtUs ?? 0;
  expect(await check()).toMatchObject({ outcome: 'renewed' });
  expect(await context.states.read()).toMatchObject({ failures: 0, nextTryAtUs: null });
  // The order that was placed was resumed.
  expect(authority.count('newOrder')).toBe(step === 'newOrder' ? 3 : 1);
});
