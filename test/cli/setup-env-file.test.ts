/** The text of `.env` that `earshot setup` writes. */
import { parseEnv } from 'node:util';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { mergeEnvFile } from '../../src/cli/setup/env-file.ts';
import { isAppError } from '../../src/domain/app-error.ts';

const header = 'Written by a test.';

it('begins a new file with its header', () => {
  expect(mergeEnvFile(null, { EARSHOT_TLS: 'acme' }, { header })).toBe(
    '# Written by a test.\nEARSHOT_TLS=acme\n',
  );
});

it('keeps comments, other names, and lines that say the same already', () => {
  const before = [
    '# mine',
    'OTHER="1"',
    "EARSHOT_TLS='acme'",
    'EARSHOT_LISTEN=a:1',
    'export EARSHOT_LISTEN=b:2',
  ];
  const settings = { EARSHOT_TLS: 'acme', EARSHOT_LISTEN: '0.0.0.0:443' };
  expect(mergeEnvFile(before.join('\n'), settings, { header })).toBe(
    `# mine\nOTHER="1"\nEARSHOT_TLS='acme'\nEARSHOT_LISTEN=0.0.0.0:443\n`,
  );
});

it('ends the last line before it adds one', () => {
  expect(mergeEnvFile('A=1', { B: '2' }, { header })).toBe('A=1\nB=2\n');
});

it('removes what is dropped', () => {
  const text = mergeEnvFile('A=1\nB=2\n', {}, { header, dropped: ['A'] });
  expect(text).toBe('B=2\n');
});

it('refuses to change a value of several lines instead of leaving a part of it', () => {
  const before = 'EARSHOT_ACCOUNT_PASSWORD="one\ntwo"\n';
  const merge = () =>
    mergeEnvFile(before, { EARSHOT_ACCOUNT_PASSWORD: 'a\'b"c' }, { header, dropped: [] });
  expect(merge).toThrow(/no \.env file can hold|cannot be changed automatically/);
});

it('writes every value so that it is read back, or refuses it', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'grapheme-ascii' }), (value) => {
      try {
        const text = mergeEnvFile('A=1\n', { SECRET: value }, { header });
        expect(parseEnv(text)).toEqual({ A: '1', SECRET: value });
      } catch (error) {
        if (!isAppError(error)) throw error;
      }
    }),
  );
});
