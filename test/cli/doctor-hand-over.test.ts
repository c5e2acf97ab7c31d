/** `earshot doctor` on what goes out: sinks and alerts, as they are configured. */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { registration } from '../watch/watch-world.ts';
import type { PrintedFinding } from './doctor-world.ts';
import { runCommand } from './fake-io.ts';

async function findingsOf(folder: string, env: Record<string, string> = {}) {
  const { out } = await runCommand(['doctor', '--json'], {
    env: { EARSHOT_DATA_DIR: join(folder, 'data'), ...env },
    workingDir: folder,
    fetch: () => Promise.reject(new Error('no network')),
  });
  const findings: PrintedFinding[] = JSON.parse(out);
  return findings.filter(({ check }) => /^(sink|alerts|filters|configuration)/.test(check));
}

function withSinks(sinks: string): string {
  const folder = temporaryDirectory();
  writeFileSync(
    join(folder, 'earshot.config.ts'),
    `export default { subscriptions: {}, sinks: ${sinks} };\n`,
  );
  return folder;
}

describe('the doctor on sinks and alerts', () => {
  it('finds programs by their path and on PATH, and says why one cannot be run', async () => {
    const folder = withSinks(
      "{ a: { command: ['act'] }, b: { command: ['./act'] }, c: { command: ['gone'] }, d: { command: ['./text'] } }",
    );
    writeFileSync(join(folder, 'act'), '#!/bin/sh\n');
    chmodSync(join(folder, 'act'), 0o700);
    writeFileSync(join(folder, 'text'), '');
    const env = { PATH: `/nonexistent:${folder}`, EARSHOT_ALERT_COMMAND: 'act --urgent' };
    const findings = await findingsOf(folder, env);
    const shown = findings.map(({ check, state }) => `${state} ${check}`);
    expect(shown.slice(-5)).toEqual([
      'pass sink a',
      'pass sink b',
      'fail sink c',
      'fail sink d',
      'pass alerts',
    ]);
    const messages = findings.map(({ message }) => message);
    expect(messages).toContain('gone cannot be run: there is none of this name on the PATH.');
    expect(messages).toContain(
      './text cannot be run: the user that runs earshot may not execute it.',
    );
  });

  it('tells faults of the file as a whole with the configuration, and looks no further', async () => {
    const folder = withSinks("{ bus: { webhook: 'https://example.org/', timeoutSeconds: 0 } }");
    const findings = await findingsOf(folder, { EARSHOT_ALERT_URL: 'ftp://secret-part/' });
    const faults = findings.filter(({ check }) => check === 'configuration');
    const texts = faults.map(({ message, advice }) => `${message} ${advice}`);
    expect(texts.filter((text) => text.includes('sinks.bus.timeoutSeconds'))).toEqual([
      expect.stringContaining('earshot.config.ts'),
    ]);
    expect(texts.filter((text) => text.includes('EARSHOT_ALERT_URL'))).toHaveLength(1);
    expect(texts.join()).not.toContain('secret-part');
    for (const name of ['sinks', 'alerts']) {
      expect(findings.find(({ check }) => check === name)).toMatchObject({ state: 'skipped' });
    }
  });

  it('warns of a filter of a sink that can match nothing', async () => {
    const folder = withSinks(
      `{ bus: { command: ['sh'], filter: "Collection/Name eq 'SENTINEL2'" } }`,
    );
    const warned = (await findingsOf(folder)).filter(({ check }) => check === 'filters');
    expect(warned).toMatchObject([
      {
        state: 'warn',
        message: expect.stringMatching(/^sinks\.bus\.filter: .*SENTINEL2/),
        advice: expect.stringContaining('decides what is handed over'),
      },
    ]);
  });

  it('looks at sound sinks beside faulty ones, which fail with all their problems', async () => {
    const odd = `a: { webhook: 'https://a.example', secretFile: 'gone', ca: 'gone' },
      c: { command: ['sh'], filter: 'Naem' }`;
    const ofSinks = async (sinks: string) =>
      (await findingsOf(withSinks(sinks), { PATH: '/usr/bin:/bin' }))
        .filter(({ check }) => check.startsWith('sink'))
        .map(({ check, state, message, advice }) => `${state} ${check}: ${message} ${advice}`);
    const faults = [
      expect.stringMatching(/^fail sink a: sinks\.a\.secretFile: ./),
      expect.stringMatching(/^fail sink a: sinks\.a\.ca: ./),
      expect.stringMatching(/^fail sink c: sinks\.c\.filter: .* Fix it in /s),
    ];
    expect(await ofSinks(`{ ${odd}, b: { command: ['sh'] } }`)).toEqual([
      expect.stringMatching(/^pass sink b: /),
      ...faults,
    ]);
    expect(await ofSinks(`{ ${odd} }`)).toEqual(faults);
  });

  it('warns of a sink that wants a subscription that nobody knows', async () => {
    const folder = withSinks(`{ bus: { command: ['sh'], subscriptions: ['alsp', 'nile'] } }`);
    const path = join(folder, 'earshot.config.ts');
    writeFileSync(path, readFileSync(path, 'utf8').replace('{}', '{ alps: {} }'));
    const store = await openStore({ dataDir: join(folder, 'data'), nowUs: () => 0 });
    await store.administration.commit({ save: registration({ name: 'nile' }) });
    await store.administration.commit({ forget: 'nile' });
    await store.close();
    const warned = (await findingsOf(folder)).filter(({ check }) => check === 'filters');
    expect(warned).toEqual([
      {
        check: 'filters',
        state: 'warn',
        message: 'sinks.bus.subscriptions: there is no subscription alsp.',
        advice:
          'Did you mean alps? Known are: alps, nile. Nothing is handed over for it until there is one.',
      },
    ]);
  });
});
