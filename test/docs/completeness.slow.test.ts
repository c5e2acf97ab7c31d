/**
 * docs/operations.md shows the output of the commands on completeness, in this order. To update it:
 * `npx vitest run test/docs/completeness.slow.test.ts --update`.
 */
import { describe, expect, it } from 'vitest';
import { openCompletenessContext } from './completeness-context.ts';
import { readPage, sessionsOf } from './console-sessions.ts';

describe('the outputs in docs/operations.md', () => {
  it('are those of the commands, which recover everything', async () => {
    let page = readPage('operations.md');
    const sessions = sessionsOf(page);
    expect(sessions.length).toBe(4);
    const { earshot } = await openCompletenessContext();
    for (const { line, text, command } of sessions) {
      const { out, err } = await earshot(command);
      page = page.replace(text, () => `${line}\n${out}${err}`);
    }
    const { out } = await earshot(['coverage', '--since', '48h']);
    expect(out).toMatch(/^s2 +620 +541 +3 +76 +0 +48 of 48 h +100 %$/m);
    await expect(page).toMatchFileSnapshot('../../docs/operations.md');
  });
});
