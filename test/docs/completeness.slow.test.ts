/**
 * docs/completeness.md shows what the commands print, one after the other. To bring it up to date:
 * `npx vitest run test/docs/completeness.slow.test.ts --update`.
 */
import { describe, expect, it } from 'vitest';
import { openCompletenessContext } from './completeness-context.ts';
import { readPage, sessionsOf } from './console-sessions.ts';

describe('the page on completeness', () => {
  it('shows what is printed', async () => {
    let page = readPage('completeness.md');
    const sessions = sessionsOf(page);
    expect(sessions.length).toBeGreaterThanOrEqual(5);
    const { earshot } = await openCompletenessContext();
    for (const { line, text, command } of sessions) {
      const { out, err } = await earshot(command);
      page = page.replace(text, () => `${line}\n${out}${err}`);
    }
    await expect(page).toMatchFileSnapshot('../../docs/completeness.md');
  });
});
