/** The estimate of tokens is simple, and rather too high than too low. */
import { expect, it } from 'vitest';
import { chatRequest, estimateTokens, repeatRequest } from '../../../src/summary/prompt.ts';
import { digest, optical } from '../check/sample-sheets.ts';

it('counts a third of the bytes, 8 a message, and the longest answer that is kept', () => {
  const request = { model: 'a/b', messages: [{ role: 'user', content: 'ä'.repeat(150) } as const] };
  expect(estimateTokens(request, 'product')).toBe(100 + 8 + 400);
  expect(estimateTokens(request, 'digest')).toBe(100 + 8 + 800);
});

it('allows a digest twice the answer of a product', () => {
  const bytesOf = (content: string) => Math.ceil(Buffer.byteLength(content) / 3);
  for (const [sheet, answer] of [
    [optical, 400],
    [digest, 800],
  ] as const) {
    const request = chatRequest(sheet, 'a/b');
    const question = request.messages.reduce((sum, { content }) => sum + bytesOf(content) + 8, 0);
    expect(estimateTokens(request, sheet.kind)).toBe(question + answer);
    const repeated = repeatRequest(request, ['number']);
    expect(estimateTokens(repeated, sheet.kind)).toBeGreaterThan(question + answer);
  }
});

it('is more than any tokeniser counts for words and numbers, and not absurdly so', () => {
  const request = chatRequest(optical, 'a/b');
  const text = request.messages.map(({ content }) => content).join('');
  // Words, runs of three digits, and every other sign: as the tokenisers of today cut at least.
  const pieces = text.match(/ ?\p{L}{1,7}|\p{N}{1,3}|[^\p{L}\p{N}\s]{1,3}|\s+/gu)?.length ?? 0;
  expect(estimateTokens(request, 'product')).toBeGreaterThan(pieces);
  expect(estimateTokens(request, 'product')).toBeLessThan(3 * pieces);
});
