/** Digests of credentials: they tell equal ones from others, and nothing else. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestCredentials, isDigestOf } from '../../../src/admin/plan-context.ts';

const pair = { username: 'catalogue', password: 'a long password, ü : %' };
const digest = digestCredentials(pair, 'salt');

describe('a digest', () => {
  it('is that of its credentials', () => {
    expect(isDigestOf(digest, pair)).toBe(true);
    expect(isDigestOf(digestCredentials(pair, 'another'), pair)).toBe(true);
  });

  it.each([
    ['another user', { ...pair, username: 'catalogu' }],
    ['another password', { ...pair, password: `${pair.password} ` }],
    ['none', { username: '', password: '' }],
    ['both in each other’s place', { username: pair.password, password: pair.username }],
  ])('is not that of %s', (_, other) => {
    expect(isDigestOf(digest, other)).toBe(false);
  });

  it('differs with its salt, so that equal credentials do not show', () => {
    expect(digestCredentials(pair, 'another')).not.toBe(digest);
  });

  it('holds neither the user name nor the password', () => {
    expect(digest).not.toContain(pair.username);
    expect(digest).not.toContain(pair.password);
    expect(digest).toMatch(/^scrypt:salt:[0-9a-f]{64}$/);
  });

  it('takes work to guess', () => {
    const began = performance.now();
    digestCredentials(pair, 'salt');
    expect(performance.now() - began).toBeGreaterThan(1);
  });

  it('is that of any credentials and any salt, and of no others', () => {
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 });
    const username = text.filter((word) => !word.includes(':'));
    const credentials = fc.record({ username, password: text });
    const salt = fc.base64String({ minLength: 4, maxLength: 40 });
    fc.assert(
      fc.property(credentials, credentials, salt, (one, other, salted) => {
        const made = digestCredentials(one, salted);
        expect(isDigestOf(made, one)).toBe(true);
        const same = one.username === other.username && one.password === other.password;
        expect(isDigestOf(made, other)).toBe(same);
      }),
      { numRuns: 40 },
    );
  });
});

describe('what is no digest', () => {
  it.each([
    null,
    '',
    'scrypt',
    'scrypt:',
    'scrypt:salt',
    'scrypt:salt:',
    digest.slice(0, -1),
    `${digest}0`,
  ])('is that of nobody: %s', (text) => {
    expect(isDigestOf(text, pair)).toBe(false);
  });
});
