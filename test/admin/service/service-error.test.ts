/** What the catalogue says when it refuses: every form of it, word for word, and no secret. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { errorText } from '../../../src/domain/app-error.ts';
import type { Answer } from '../../http/answering-server.ts';
import { errorOf, id, startStandIn, wanted } from './catalogue-stand-in.ts';

/** The error that the client makes of an answer to a creation. */
async function errorWith(answer: Answer) {
  const { client } = await startStandIn([answer]);
  return errorOf(client.create(wanted));
}

describe('the words', () => {
  it('of a text reach the reader unchanged', async () => {
    const detail = "Invalid filter: Invalid field: 'Größe' (see $filter).";
    const error = await errorWith({
      status: 400,
      body: { detail },
      headers: { 'request-id': 'r-1' },
    });
    expect(errorText(error)).toBe(
      `The catalogue refused to create the subscription (400, request id r-1). It says: ${detail}`,
    );
  });

  it('of an object too, with the id in its body when no header has one', async () => {
    const body = { detail: { message: 'Invalid value.', request_id: 'r-2' } };
    expect(errorText(await errorWith({ status: 400, body }))).toBe(
      'The catalogue refused to create the subscription (400, request id r-2). It says: Invalid value.',
    );
    const headers = { 'request-id': 'r-3' };
    expect(errorText(await errorWith({ status: 400, body, headers }))).toContain('request id r-3)');
  });

  it('of a list become a line each, without what was sent', async () => {
    const input = { NotificationEpPassword: wanted.credentials.password, odd: 'input' };
    const detail = [
      { type: 'missing', loc: ['body', 'SubscriptionType'], msg: 'Field required', input },
      { type: 'enum', loc: ['body', 'SubscriptionEvent', 0], msg: 'Input should be …', input },
      { msg: 'Without a place', input },
      'a text',
      { input },
    ];
    const error = await errorWith({ status: 422, body: { detail } });
    expect(errorText(error)).toBe(
      'The catalogue refused to create the subscription (422). It says:',
    );
    expect(error.details).toEqual([
      'body.SubscriptionType: Field required',
      'body.SubscriptionEvent.0: Input should be …',
      'Without a place',
      'a text',
      '(a finding without words)',
    ]);
  });

  it('of a long list are no more than twenty lines', async () => {
    const detail = Array.from({ length: 50 }, (_, index) => ({ loc: [index], msg: 'odd' }));
    const { details } = await errorWith({ status: 422, body: { detail } });
    expect([details.length, details.at(-1)]).toEqual([21, '… and 30 more']);
  });

  it.each([
    ['plain text', 'upstream connect error', 'It says: upstream connect error'],
    ['a page', '<html><title>502 Bad Gateway</title>', 'It says: (a web page) 502 Bad Gateway'],
    ['other JSON', { error: 'odd' }, 'It says: {"error":"odd"}'],
    ['control characters', 'a\u001b]0;x\u0007b', 'It says: a\ufffd]0;x\ufffdb'],
    ['more than a glance', 'x'.repeat(300), `It says: ${'x'.repeat(200)}…`],
  ])('of %s are a hint', async (_title, body, words) => {
    const error = await errorWith({ status: 400, body });
    expect(errorText(error).endsWith(words)).toBe(true);
  });

  it('that are none leave the status', async () => {
    expect(errorText(await errorWith({ status: 418 }))).toBe(
      'The catalogue refused to create the subscription (418).',
    );
  });

  it.each([
    ['as a text', (text: string) => ({ detail: text })],
    ['as an object', (text: string) => ({ detail: { message: text } })],
    ['as a list', (text: string) => ({ detail: [{ loc: [text], msg: text }] })],
    ['in another form', (text: string) => ({ sent: text })],
    ['as plain text', (text: string) => text],
  ])('never hold what they repeat of our secrets: %s', async (_title, form) => {
    const { username, password } = wanted.credentials;
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const echo = `first-token ${password} ${encodeURIComponent(password)} ${basic}`;
    const error = await errorWith({
      status: 400,
      body: form(echo),
      headers: { 'request-id': 'Bearer first-token' },
    });
    expect([errorText(error), ...error.details].join()).toContain('… … … …');
  });
});

describe('the code', () => {
  it.each([
    [400, 'invalid'],
    [402, 'invalid'],
    [403, 'invalid'],
    [404, 'invalid'],
    [405, 'invalid'],
    [408, 'unavailable'],
    [409, 'conflict'],
    [413, 'invalid'],
    [422, 'invalid'],
    [429, 'too_many'],
    [500, 'unavailable'],
    [501, 'unavailable'],
    [502, 'unavailable'],
    [503, 'unavailable'],
    [599, 'unavailable'],
    [301, 'unavailable'],
    [304, 'unavailable'],
    [307, 'unavailable'],
  ])('of %i is %s', async (status, code) => {
    expect((await errorWith({ status })).code).toBe(code);
  });

  it('of too many requests says when to try again', async () => {
    const soon = await errorWith({ status: 429, headers: { 'Retry-After': '17' } });
    expect(errorText(soon)).toBe(
      'The catalogue refused to create the subscription, as it was asked too often (429). Try again in 17 seconds.',
    );
    expect(errorText(await errorWith({ status: 429 }))).toContain('Try again later.');
  });

  it('of a redirect says where it points, without the path', async () => {
    const location = 'https://elsewhere.example/path?token=first-token';
    expect(errorText(await errorWith({ status: 302, headers: { location } }))).toBe(
      'The catalogue did not create the subscription but points to https://elsewhere.example (302). earshot does not follow, as the access token must not travel. Check EARSHOT_CATALOGUE_URL.',
    );
    const odd = await errorWith({ status: 302, headers: { location: 'javascript:first-token' } });
    expect(errorText(odd)).toContain('points to another address (302)');
  });

  it('of an unknown id is its own, with whatever status it comes', async () => {
    for (const status of [400, 404, 410, 422]) {
      for (const detail of [
        `Subscription with id ${id} not found.`,
        { message: `Subscription with id ${id} not found.` },
        [{ loc: ['path', 'id'], msg: `Subscription with id ${id} not found.` }],
      ]) {
        const { client } = await startStandIn([{ status, body: { detail } }]);
        expect((await errorOf(client.edit(id, { status: 'paused' }))).code).toBe('not_found');
      }
    }
  });
});

const fixtures = resolve(import.meta.dirname, '../../../../shared/fixtures/errors');

describe.skipIf(!existsSync(fixtures))(
  'recorded errors of the real catalogue (in ../shared/fixtures)',
  () => {
    const recorded = () =>
      readdirSync(fixtures).flatMap((name) =>
        JSON.parse(readFileSync(join(fixtures, name), 'utf8')),
      );

    it('reach the reader word for word, with their request id', async () => {
      let seen = 0;
      for (const { request, response, ...bare } of recorded()) {
        const body = response?.body ?? bare;
        const headers =
          response === undefined ? {} : { 'request-id': response.headers['request-id'] };
        const error = await errorWith({ status: response?.status.code ?? 400, body, headers });
        const { detail } = body;
        const words = Array.isArray(detail)
          ? detail.map(({ msg }) => msg)
          : [detail.message ?? detail];
        for (const word of words)
          expect([errorText(error), ...error.details].join('\n')).toContain(word);
        if (request !== undefined) expect(errorText(error)).toContain(headers['request-id']);
        seen += 1;
      }
      expect(seen).toBeGreaterThanOrEqual(12);
    });

    it('of a list read as they were meant', async () => {
      const name = join(fixtures, 'products-422-skip-release-notes.json');
      const { details } = await errorWith({
        status: 422,
        body: JSON.parse(readFileSync(name, 'utf8')),
      });
      expect(details).toEqual(['query.$skip: Input should be less than or equal to 10000']);
    });
  },
);
