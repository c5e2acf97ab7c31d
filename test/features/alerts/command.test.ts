/** `earshot alerts`: active alerts, resolved alerts, and a test of the notification channels. */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { AlertFinding } from '../../../src/core/terms/evaluation.ts';
import { startServer } from '../../core/http/answering-server.ts';
import { expectEnd, nowUs, printed, printedJson, runCommand } from '../../helpers/fake-io.ts';
import { createContext, hourUs, withStore } from '../../helpers/filled-store.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const stopped: AlertFinding = {
  kind: 'not-running',
  subject: 'alps',
  level: 'critical',
  text: 'No push of the subscription alps has arrived for 9 h. This is unlikely to be chance.',
  evidence: [
    'The last notification arrived at 2026-05-02 02:00 UTC.',
    'About 40 pushes were expected.',
  ],
  nextStep: 'Run `earshot doctor` to see whether the catalogue can reach this endpoint.',
};
const disk: AlertFinding = { ...stopped, kind: 'disk', subject: '', level: 'warning' };

/** An active alert for a silent subscription and an older, resolved one for a full disk (one hour). */
async function openContext() {
  const context = createContext();
  await withStore(context.dataDir, async ({ alerts, completeness }) => {
    const settle = (hours: number, ...findings: AlertFinding[]) =>
      alerts.settleFindings({
        checked: [stopped, disk],
        findings,
        channels: ['url'],
        atUs: nowUs - hours * hourUs,
      });
    await settle(5, disk);
    await settle(4);
    await settle(1, stopped);
    await completeness.recordUptime({ fromUs: nowUs - 5 * hourUs, toUs: nowUs - hourUs / 60 });
  });
  return context;
}

describe('earshot alerts', () => {
  it('shows active alerts with text, evidence and next step, wrapped to the terminal width, and all with --all', async () => {
    const { earshot } = await openContext();
    const out = await printed(earshot('alerts'));
    expect(out).toBe(
      [
        'critical: not-running: alps',
        `  ${stopped.text}`,
        ...stopped.evidence.map((line) => `  - ${line}`),
        `  Next: ${stopped.nextStep}`,
        '  id           2',
        '  since (UTC)  2026-05-02 11:00',
        '  sent to      EARSHOT_ALERT_URL (not sent yet)',
        '',
      ].join('\n'),
    );
    const all = await printed(earshot('alerts --all'));
    expect(all).toMatch(/\n\nwarning: disk\n[\s\S]* {2}resolved \(UTC\) +2026-05-02 08:00\n/);
    const narrow = await earshot('alerts', {
      isTTY: true,
      columns: 60,
      env: { NO_COLOR: '1' },
    });
    const widths = narrow.out.split('\n').map(({ length }) => length);
    expect(Math.max(...widths)).toBeLessThanOrEqual(60);
  });

  it.each([
    ['--since 3h', [2]],
    ['--since 3h30m', undefined],
    ['--since 5h --until 2h', [1]],
    ['--limit 1', [2]],
  ])('--all %s lists the alerts that were active in the period', async (period, ids) => {
    const { earshot } = await openContext();
    const found = await earshot(`alerts --json --all ${period}`.trim());
    expect(found.code).toBe(ids === undefined ? 2 : 0);
    if (ids !== undefined)
      expect(JSON.parse(found.out).map(({ id }: { id: number }) => id)).toEqual(ids);
  });

  it('--json prints every field, newest first', async () => {
    const { earshot } = await openContext();
    const at = (hour: string) => `2026-05-02T${hour}:00:00.000000Z`;
    const channels = [{ channel: 'url', sent: null, error: null }];
    expect(await printedJson(earshot('alerts --all --json'))).toEqual([
      { ...stopped, id: 2, raisedAt: at('11'), resolvedAt: null, channels },
      { ...disk, id: 1, raisedAt: at('07'), resolvedAt: at('08'), channels },
    ]);
  });

  it.each([
    ['warning', { sent: 'warning' }, 'accepted'],
    ['critical', { error: 'no answer' }, 'failed: no answer'],
    ['critical', { sent: 'warning' }, 'not sent yet'],
  ] as const)('reports what a channel did with a %s alert: %j', async (level, attempt, result) => {
    const { dataDir, earshot } = createContext();
    await withStore(dataDir, async ({ alerts }) => {
      const about = { checked: [], channels: ['url', 'command'], atUs: nowUs } as const;
      await alerts.settleFindings({ ...about, findings: [{ ...stopped, level }] });
      await alerts.recordAttempt({ id: 1, channel: 'url', ...attempt });
    });
    const shown = `EARSHOT_ALERT_URL (${result}), EARSHOT_ALERT_COMMAND (not sent yet)`;
    expect((await earshot('alerts')).out).toContain(shown);
  });

  it('reports that no alert is active, and since when nothing is checked', async () => {
    const { dataDir, earshot } = createContext();
    const runUntil = (toUs: number) =>
      withStore(dataDir, ({ completeness }) => completeness.recordUptime({ fromUs: toUs, toUs }));
    await withStore(dataDir, async () => undefined);
    await expectEnd(earshot('alerts'), 0, 'No receiver has ever run on this data directory');
    await runUntil(nowUs - 3 * hourUs);
    // An empty list alone would suggest that there are no problems.
    const json = await expectEnd(earshot('alerts -o json'), 0, /^No receiver has run since /);
    expect(json.out).toBe('[]\n');
    await runUntil(nowUs);
    const { out, err } = await expectEnd(earshot('alerts'), 0, /^No active alerts\. .*--all` also/);
    expect([out, err]).toEqual(['', expect.not.stringContaining('No receiver')]);
    expect((await earshot('alerts --all')).err).toBe('No alerts.\n');
  });
});

describe('earshot alerts --test', () => {
  it('posts the alert document to the URL and passes it to the command', async () => {
    const chat = await startServer([{}]);
    const folder = temporaryDirectory();
    const program = join(folder, 'notify');
    writeFileSync(program, `#!/bin/sh\ncat > ${folder}/received\n`);
    chmodSync(program, 0o700);
    const { code, out, err } = await runCommand('alerts --test', {
      env: { PATH: '/usr/bin:/bin', EARSHOT_ALERT_URL: chat.url, EARSHOT_ALERT_COMMAND: program },
    });
    expect({ code, out, err }).toEqual({
      code: 0,
      out: '',
      err: 'EARSHOT_ALERT_URL accepted the test alert.\nEARSHOT_ALERT_COMMAND accepted the test alert.\n',
    });
    const body = JSON.parse(chat.requests[0]?.body ?? '');
    const text = expect.stringMatching(/^earshot: test message\n/);
    expect(body).toMatchObject({ version: 1, alert: 0, change: 'raised', kind: 'test', text });
    expect(JSON.parse(readFileSync(join(folder, 'received'), 'utf8'))).toEqual(body);
  });

  it('requires a channel, tries both, reports the error of each, and does not print the URL', async () => {
    await expectEnd(runCommand('alerts --test'), 2, /Set EARSHOT_ALERT_URL or EARSHOT_ALERT_COMM/);
    const { code, err } = await runCommand('alerts --test', {
      env: {
        EARSHOT_ALERT_URL: `http://127.0.0.1:${await freePort()}/hooks/a-secret-part`,
        EARSHOT_ALERT_COMMAND: '/nonexistent/notify',
      },
    });
    expect(code).toBe(1);
    expect(err).toMatch(/^earshot: .*ECONNREFUSED/);
    expect(err).toContain('cannot be started (ENOENT). Check EARSHOT_ALERT_COMMAND');
    expect(err).not.toContain('a-secret-part');
    expect(err).not.toContain('fault of the program');
  });
});
