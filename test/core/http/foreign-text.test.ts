import { describe, expect, it } from 'vitest';
import { foreignText, hintOf } from '../../../src/core/http/service-error.ts';

const plain = (text: string, secrets: string[] = []) =>
  foreignText(text, { secrets, charactersMax: 1_000 });

describe('foreign text', () => {
  it('stays unchanged, in any script', () => {
    const words = 'Invalid filter: „Größe“ 衛星 🛰 <b>&amp;</b> \'x\' "y"';
    expect(plain(words)).toBe(words);
  });

  it('escapes control characters and marks that reverse the direction of text', () => {
    expect(plain('a\u001b[31mred\nb\u0000\u202ec\u2028d')).toBe(
      'a\\u001b[31mred\\u000ab\\u0000\\u202ec\\u2028d',
    );
  });

  it('is cut when it is long, never inside a character', () => {
    expect(foreignText('x'.repeat(11), { secrets: [], charactersMax: 10 })).toBe('xxxxxxxxxx…');
    expect(foreignText('x'.repeat(10), { secrets: [], charactersMax: 10 })).toBe('xxxxxxxxxx');
    expect(
      foreignText(`${'x'.repeat(9)}🛰🛰`, { secrets: [], charactersMax: 10 }).isWellFormed(),
    ).toBe(true);
  });
});

describe('a secret', () => {
  const secret = 'p"ä ß\\%+&/word';

  it.each([
    ['as it is', secret],
    ['in JSON', JSON.stringify({ p: secret })],
    ['in a URL', `https://x/?p=${encodeURIComponent(secret)}`],
    ['in a form', new URLSearchParams({ p: secret }).toString()],
  ])('is removed %s', (_title, text) => {
    const shown = plain(`before ${text} after`, [secret]);
    expect(shown).toContain('…');
    expect(shown).not.toContain('word');
  });

  it('inside another leaves no part of the other', () => {
    expect(plain('it was outer-inner-outer', ['inner', 'outer-inner-outer'])).toBe('it was …');
  });

  it('is removed before the text is cut', () => {
    const shown = foreignText(`1234567 ${secret}`, { secrets: [secret], charactersMax: 12 });
    expect(shown).toBe('1234567 …');
  });
});

it.each([
  ['<!doctype html>\n<title>503\n Unavailable </title><body>…', '(a web page) 503 Unavailable'],
  ['  <html><body>no title</body>', '(a web page)'],
  ['upstream connect error', 'upstream connect error'],
  ['', ''],
])('a body of unknown form %j is reported as %j', (body, hint) => {
  expect(hintOf(body)).toBe(hint);
});
