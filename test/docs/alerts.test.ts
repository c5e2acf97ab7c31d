/** docs/monitoring.md: its alert message equals the sent one, and it names every kind and field. */

import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { asCalled } from '../../src/core/cli/output.ts';
import { createRunProgram } from '../../src/core/host/run-program.ts';
import { parseDate } from '../../src/core/terms/dates.ts';
import { type AlertMessage, alertMessage } from '../../src/features/alerts/notify.ts';
import { beginUs, hourUs, openContext, registration } from '../features/alerts/watch-context.ts';
import { alertKinds } from '../helpers/status.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { asOnPages, blocks, readPage } from './console-sessions.ts';

const page = readPage('monitoring.md');
const shown: AlertMessage = JSON.parse(blocks(page, 'json')[0] ?? '');

describe('the page on alerts', () => {
  it('shows the message as sent, and names its fields', () => {
    const { subject, problem: text, evidence, nextStep, raisedAt } = shown;
    const raisedAtUs = parseDate(raisedAt)?.us ?? 0;
    const alert = { id: 7, kind: 'not-running', level: 'critical', resolvedAtUs: null } as const;
    const words = { subject, text, evidence, nextStep, raisedAtUs };
    expect(alertMessage({ ...alert, ...words })).toEqual(shown);
    for (const field of Object.keys(shown)) expect(page).toContain(`\`${field}\``);
  });

  it('shows an alert of a subscription that a person has paused', async () => {
    const pausedSeenAtUs = beginUs + (14 * 24 + 8) * hourUs;
    const paused = registration({ pausedSeenAtUs, changedByPerson: true });
    const { live, check } = await openContext({}, [paused]);
    await live(pausedSeenAtUs + hourUs);
    const [alert] = await check();
    const [text = ''] = blocks(page, 'text');
    const lines = [alert?.text, ...(alert?.evidence ?? []).map((line) => `- ${line}`)];
    expect(text).toContain(`${alert?.level}: ${alert?.kind}: ${alert?.subject}\n`);
    const unwrapped = text.replaceAll(/\n {2}(?=and )/g, ' ');
    for (const line of [...lines, `Next: ${asCalled(alert?.nextStep ?? '', { env: asOnPages })}`])
      expect(unwrapped).toContain(`  ${line}\n`);
  });

  it('states for every kind when it is raised', () => {
    for (const kind of alertKinds)
      expect(page).toMatch(new RegExp(`^- \\*\\*\`${kind}\`:\\*\\* .`, 'm'));
  });

  it('has a program that stores messages', async () => {
    const folder = temporaryDirectory();
    const program = join(folder, 'notify-me');
    const text = blocks(page, 'sh').find((block) => block.startsWith('#!/bin/sh')) ?? '';
    writeFileSync(program, text.replace('/var/log', folder));
    chmodSync(program, 0o700);
    const { signal } = new AbortController();
    const run = createRunProgram({ env: { PATH: '/usr/bin:/bin' } });
    const line = `${JSON.stringify(shown)}\n`;
    const end = await run([program, '--urgent'], line, { timeoutMs: 10_000, signal });
    expect(end).toMatchObject({ exitCode: 0, stderr: '' });
    expect(readFileSync(join(folder, 'earshot-alerts.ndjson'), 'utf8')).toBe(line);
  });
});
