/** `earshot doctor`: from an empty machine to a working subscription. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runSteps, type Step } from '../../src/cli/doctor/steps.ts';
import { AppError } from '../../src/domain/app-error.ts';
import type { Finding } from '../../src/domain/finding.ts';
import { otherProject } from '../../src/sandbox/live-settings.ts';
import { openStore } from '../../src/store/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { doneWith } from '../store/summary-jobs.ts';
import { registration } from '../watch/watch-context.ts';
import { account, asPerson, endpointPair } from './account-context.ts';
import { openDoctorContext, type PrintedFinding } from './doctor-context.ts';
import { runCommand } from './fake-io.ts';
import { model, startInference } from './summary-context.ts';
import { putSummaries } from './summary-samples.ts';

const noNetwork: typeof fetch = () => Promise.reject(new Error('no network'));

const onlyThisMachine: typeof fetch = (input, init) => {
  const { hostname } = new URL(input instanceof Request ? input.url : input);
  return hostname === '127.0.0.1' ? fetch(input, init) : noNetwork(input);
};

/** Runs the doctor on a machine where nothing else is configured. */
async function findingsWith(env: Record<string, string>, workingDir = temporaryDirectory()) {
  const { code, out } = await runCommand(['doctor', '--json'], {
    env: { EARSHOT_DATA_DIR: join(workingDir, 'data'), ...env },
    workingDir,
    fetch: onlyThisMachine,
  });
  const findings: PrintedFinding[] = JSON.parse(out);
  return { code, findings };
}

const stateOf = (findings: PrintedFinding[], check: string) =>
  findings.filter((finding) => finding.check === check).map(({ state }) => state);

describe('the doctor before anything is set up', () => {
  it('reports what is missing, creates nothing, and exits 1', async () => {
    const folder = temporaryDirectory();
    const { code, findings } = await findingsWith({}, folder);
    expect(code).toBe(1);
    expect(findings.map(({ check, state }) => `${state} ${check}`)).toEqual([
      'fail configuration',
      'fail configuration',
      'pass data directory',
      'pass owner-only files',
      expect.stringMatching(/^(pass|warn) free space$/),
      'skipped database',
      'skipped clock',
      'fail public URL',
      'skipped name',
      'skipped public address',
      'skipped certificate files',
      'skipped endpoint',
      'skipped token',
      'skipped catalogue',
      'skipped subscriptions',
      'skipped queues',
      'skipped inference service',
      'skipped sinks',
      'warn alerts',
    ]);
    for (const { state, advice } of findings) {
      if (state === 'warn' || state === 'fail') expect(advice).toMatch(/\w/);
    }
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  it('reports for a folder of --data-dir that it has no database, and checks nothing else', async () => {
    const folder = temporaryDirectory();
    const asked: string[] = [];
    const { code, out, err } = await runCommand(['doctor', '--data-dir', folder], {
      env: {},
      workingDir: folder,
      fetch: (url) => {
        asked.push(String(url));
        return noNetwork(url);
      },
    });
    expect({ code, out, asked }).toEqual({ code: 2, out: '', asked: [] });
    expect(err).toMatch(new RegExp(`^earshot: There is no database in ${folder}\\. `));
  });

  it('reports every problem of the variables and of earshot.config.ts', async () => {
    const folder = temporaryDirectory();
    writeFileSync(
      join(folder, 'earshot.config.ts'),
      "export default { subscriptions: { S2: {}, s1: { events: ['moved'] } } };\n",
    );
    const env = {
      EARSHOT_LISTEN: 'nowhere',
      EARSHOT_PUBLIC_URI: 'https://earshot.example.org',
      EARSHOT_SUBSCRIPTIONS_MAX: 'many',
      EARSHOT_PROBE_CA: join(folder, 'missing.pem'),
      EARSHOT_ACCOUNT_TOTP: 'not a code: 1',
    };
    const { code, findings } = await findingsWith(env, folder);
    expect(code).toBe(1);
    const problems = findings.filter(({ check }) => check === 'configuration');
    const texts = problems.map(({ message, advice }) => `${message} ${advice}`);
    for (const words of [
      /EARSHOT_LISTEN: must be host:port/,
      /EARSHOT_PUBLIC_URI is not a known variable.*EARSHOT_PUBLIC_URL/,
      /EARSHOT_SUBSCRIPTIONS_MAX: must be a whole number/,
      /file of EARSHOT_PROBE_CA .*missing\.pem/,
      /EARSHOT_ACCOUNT_TOTP: must be six digits/,
      /subscriptions\.S2:/,
      /subscriptions\.s1\.events/,
    ]) {
      expect(texts.filter((text) => words.test(text))).toHaveLength(1);
    }
    expect(JSON.stringify(findings)).not.toContain('not a code');
    // Checks that need the unreadable configuration are skipped for that reason.
    const token = findings.find(({ check }) => check === 'token');
    expect(token?.message).toContain('"configuration" failed');
  });

  it('continues with the parts that can be read', async () => {
    const { findings } = await findingsWith({
      EARSHOT_TLS: 'maybe',
      EARSHOT_PUBLIC_URL: 'https://127.0.0.1:1',
    });
    expect(stateOf(findings, 'configuration')).toContain('fail');
    expect(stateOf(findings, 'public URL')).toEqual(['warn']);
    expect(stateOf(findings, 'public address')).toEqual(['fail']);
    expect(stateOf(findings, 'endpoint')).toEqual(['fail']);
  });

  it('prints aligned lines as results arrive, advice below them, and a summary on stderr', async () => {
    const env = { EARSHOT_DATA_DIR: join(temporaryDirectory(), 'data') };
    const workingDir = temporaryDirectory();
    const plain = await runCommand(['doctor'], { env, workingDir, fetch: noNetwork });
    expect(plain.code).toBe(1);
    expect(plain.err).toMatch(/^earshot: [23] passed, [12] warnings?, 3 failed, 12 skipped\.\n$/);
    const lines = plain.out.split('\n');
    expect(lines).toContain(
      'fail     public URL            EARSHOT_PUBLIC_URL is missing or invalid.',
    );
    const at = lines.findIndex((line) => line.includes('public URL'));
    expect(lines[at + 1]).toMatch(/^ {31}Set EARSHOT_PUBLIC_URL/);
    expect(plain.out).not.toContain('\u001b');
    const coloured = await runCommand(['doctor'], {
      env,
      workingDir,
      fetch: noNetwork,
      isTTY: true,
    });
    expect(coloured.out).toContain('\u001b[31mfail   \u001b[39m');
    expect(coloured.out).toContain('\u001b[32mpass   \u001b[39m');
  });

  it('writes no faster than the output is read', async () => {
    const env = { EARSHOT_DATA_DIR: join(temporaryDirectory(), 'data') };
    const options = { env, workingDir: temporaryDirectory(), fetch: noNetwork, slowReader: true };
    expect((await runCommand(['doctor', '--json'], options)).err).toContain('3 failed');
  });
});

const otherCredentials = {
  EARSHOT_ENDPOINT_USERNAME: 'earshot-first',
  EARSHOT_ENDPOINT_PASSWORD: 'another-word',
};

describe('the doctor with a receiver and a catalogue', () => {
  it('finds no problem once a subscription is registered', async () => {
    const { doctor, earshot } = await openDoctorContext();
    const registered = await earshot(['register', '--event', 'created', '--yes']);
    expect(registered).toMatchObject({ code: 0, err: expect.stringContaining('Done') });
    const { code, findings } = await doctor();
    const shown = findings.map(({ check, state }) => `${state} ${check}`);
    expect(shown).toEqual([
      'pass configuration',
      'pass data directory',
      'pass owner-only files',
      'pass secret files',
      expect.stringMatching(/^(pass|warn) free space$/),
      'pass database',
      'pass clock',
      'pass filters',
      'pass public URL',
      'skipped public address',
      'pass certificate files',
      'pass endpoint',
      'pass login required',
      'pass endpoint login',
      'pass token',
      'pass catalogue',
      'pass subscription default',
      'skipped inference service',
      'skipped sinks',
      'warn alerts',
    ]);
    expect(code).toBe(0);
    expect(findings.find(({ check }) => check === 'catalogue')?.message).toContain(
      'Subscriptions: 1 of 2 running, 1 of 10 in total.',
    );
    const text = (await earshot(['doctor'])).out + JSON.stringify(findings);
    for (const { password } of [account, endpointPair]) expect(text).not.toContain(password);
  });

  it('causes no entry in the log of the receiver, unless the credentials differ', async () => {
    const { doctor, complaints } = await openDoctorContext();
    const { findings } = await doctor();
    expect(stateOf(findings, 'login required')).toEqual(['pass']);
    expect(complaints()).toEqual([]);
    await doctor(otherCredentials);
    expect(complaints().join()).toContain('login failed');
  });

  it('reports that the receiver is not running', async () => {
    const { doctor, receiver } = await openDoctorContext();
    await receiver.close();
    const { code, findings } = await doctor();
    expect(code).toBe(1);
    expect(findings.find(({ check }) => check === 'endpoint')).toMatchObject({
      state: 'fail',
      advice: expect.stringContaining('earshot start'),
    });
    // Unrelated checks run as usual.
    expect(stateOf(findings, 'catalogue')).toEqual(['pass']);
    expect(stateOf(findings, 'subscriptions')).toEqual(['skipped']);
  });

  it('reports that the receiver has other credentials, and that the account login fails', async () => {
    const { doctor } = await openDoctorContext();
    const { findings } = await doctor({
      ...otherCredentials,
      EARSHOT_ACCOUNT_PASSWORD: 'mistyped',
    });
    expect(findings.find(({ check }) => check === 'endpoint login')).toMatchObject({
      state: 'fail',
      message: expect.stringContaining('401'),
    });
    expect(stateOf(findings, 'login required')).toEqual(['pass']);
    expect(stateOf(findings, 'token')).toEqual(['fail']);
    expect(stateOf(findings, 'catalogue')).toEqual(['skipped']);
    expect(JSON.stringify(findings)).not.toMatch(/another-word|mistyped/);
  });

  it('reports without EARSHOT_PROBE_CA that the certificate is not publicly trusted', async () => {
    const { doctor } = await openDoctorContext();
    const { code, findings } = await doctor({ EARSHOT_PROBE_CA: '' });
    expect(code).toBe(1);
    expect(stateOf(findings, 'endpoint')).toEqual(['fail']);
  });

  it('demands a public address of a receiver on this machine with a catalogue elsewhere', async () => {
    const { doctor } = await openDoctorContext();
    const { findings } = await doctor({
      EARSHOT_CATALOGUE_URL: 'https://catalogue.invalid',
      // Without a token, the doctor sends no request to that catalogue.
      EARSHOT_ACCOUNT_PASSWORD: 'mistyped',
    });
    expect(stateOf(findings, 'name')).toEqual(['warn']);
    expect(stateOf(findings, 'public address')).toEqual(['warn']);
    expect(stateOf(findings, 'endpoint')).toEqual(['warn']);
  });

  it('reports a manually paused subscription', async () => {
    const context = await openDoctorContext();
    await context.earshot(['register', '--event', 'created', '--yes']);
    const [subscription] = context.sandbox.subscriptions();
    expect(await asPerson(context, subscription?.id ?? '', { Status: 'paused' })).toBeLessThan(300);
    const { code, findings } = await context.doctor();
    expect(code).toBe(0);
    expect(findings.find(({ check }) => check === 'subscription default')).toMatchObject({
      state: 'warn',
      message: expect.stringContaining('paused in the catalogue'),
    });
  });
});

/** The findings about sinks, alerts, filters and configuration. */
async function outgoing(folder: string, env: Record<string, string> = {}) {
  const { findings } = await findingsWith(env, folder);
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
  it('finds programs by path and on PATH, and reports why one cannot be run', async () => {
    const folder = withSinks(
      "{ a: { command: ['act'] }, b: { command: ['./act'] }, c: { command: ['gone'] }, d: { command: ['./text'] } }",
    );
    writeFileSync(join(folder, 'act'), '#!/bin/sh\n');
    chmodSync(join(folder, 'act'), 0o700);
    writeFileSync(join(folder, 'text'), '');
    const env = { PATH: `/nonexistent:${folder}`, EARSHOT_ALERT_COMMAND: 'act --urgent' };
    const findings = await outgoing(folder, env);
    const shown = findings.map(({ check, state }) => `${state} ${check}`);
    expect(shown.slice(-5)).toEqual([
      'pass sink a',
      'pass sink b',
      'fail sink c',
      'fail sink d',
      'pass alerts',
    ]);
    const messages = findings.map(({ message }) => message);
    expect(messages).toContain('gone cannot be run: no program of this name on the PATH.');
    expect(messages).toContain('./text cannot be run: no permission to execute it.');
  });

  it('reports faults of the whole file under configuration, and skips the sinks', async () => {
    const folder = withSinks("{ bus: { webhook: 'https://example.org/', timeoutSeconds: 0 } }");
    const findings = await outgoing(folder, { EARSHOT_ALERT_URL: 'ftp://secret-part/' });
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

  it('warns of a sink filter that can match nothing', async () => {
    const folder = withSinks(
      `{ bus: { command: ['sh'], filter: "Collection/Name eq 'SENTINEL2'" } }`,
    );
    const warned = (await outgoing(folder)).filter(({ check }) => check === 'filters');
    expect(warned).toMatchObject([
      {
        state: 'warn',
        message: expect.stringMatching(/^sinks\.bus\.filter: .*SENTINEL2/),
        advice: expect.stringContaining('selects the notifications to deliver'),
      },
    ]);
  });

  it('checks valid sinks next to faulty ones, which fail with all their problems', async () => {
    const odd = `a: { webhook: 'https://a.example', secretFile: 'gone', ca: 'gone' },
      c: { command: ['sh'], filter: 'Naem' }`;
    const ofSinks = async (sinks: string) =>
      (await outgoing(withSinks(sinks), { PATH: '/usr/bin:/bin' }))
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

  it('warns of a sink for an unknown subscription', async () => {
    const folder = withSinks(`{ bus: { command: ['sh'], subscriptions: ['alsp', 'nile'] } }`);
    const path = join(folder, 'earshot.config.ts');
    writeFileSync(path, readFileSync(path, 'utf8').replace('{}', '{ alps: {} }'));
    const store = await openStore({ dataDir: join(folder, 'data'), nowUs: () => 0 });
    await store.administration.commit({ save: registration({ name: 'nile' }) });
    await store.administration.commit({ removeRegistration: 'nile' });
    await store.close();
    const warned = (await outgoing(folder)).filter(({ check }) => check === 'filters');
    expect(warned).toEqual([
      {
        check: 'filters',
        state: 'warn',
        message: 'sinks.bus.subscriptions: unknown subscription alsp.',
        advice:
          'Did you mean alps? Known subscriptions: alps, nile. Until this subscription exists, the sink receives none of its notifications.',
      },
    ]);
  });
});

/** Runs the doctor; returns the findings of these checks. */
async function findingsOf(
  checks: readonly string[],
  env: Record<string, string>,
  workingDir?: string,
) {
  const { findings } = await findingsWith(env, workingDir);
  return findings.filter(({ check }) => checks.includes(check));
}

const inference = ['inference service', 'summaries'];

describe('the doctor without a configured model', () => {
  it('skips the checks of the model, because summaries are optional', async () => {
    expect(await findingsOf(inference, {})).toEqual([
      {
        check: 'inference service',
        state: 'skipped',
        message: 'No model is configured, and no rule requests summaries.',
        advice: null,
      },
    ]);
  });

  it('reports what texts are generated from when a rule requests them', async () => {
    const warned = {
      check: 'inference service',
      state: 'warn',
      message: expect.stringContaining('The texts come from the template.'),
      advice: expect.stringMatching(/EARSHOT_INFERENCE_API_KEY.*EARSHOT_INFERENCE_MODEL/),
    };
    expect(await findingsOf(inference, { EARSHOT_SUMMARY: 'digest' })).toEqual([warned]);
    const folder = temporaryDirectory();
    writeFileSync(
      join(folder, 'earshot.config.ts'),
      "export default { subscriptions: { alps: { summary: 'each' } } };\n",
    );
    expect(await findingsOf(inference, {}, folder)).toEqual([warned]);
    const endpoint = {
      EARSHOT_ENDPOINT_USERNAME: 'a',
      EARSHOT_ENDPOINT_PASSWORD: 'a-long-password',
    };
    const indexless = { ...endpoint, EARSHOT_TLS: 'off', EARSHOT_INDEX: 'off' };
    expect(await findingsOf(['configuration'], indexless, folder)).toMatchObject([
      { state: 'fail', message: expect.stringMatching(/requests summaries.*EARSHOT_INDEX is off/) },
    ]);
  });
});

describe('the doctor with a password of the private listener', () => {
  it.each([
    ['11character', ['pass', 'warn']],
    ['12characters', ['pass']],
  ])('%s reports %j', async (password, states) => {
    const endpoint = {
      EARSHOT_ENDPOINT_USERNAME: 'a',
      EARSHOT_ENDPOINT_PASSWORD: 'a-long-password',
    };
    const env = { ...endpoint, EARSHOT_TLS: 'off', EARSHOT_CONSOLE_PASSWORD: password };
    const { findings } = await findingsWith(env);
    expect(stateOf(findings, 'configuration')).toEqual(states);
    expect(JSON.stringify(findings)).not.toContain(password);
  });
});

describe('the doctor with a configured model', () => {
  it.each([true, false])(
    'accepts a key and model (the service lists models: %s)',
    async (modelsListed) => {
      const { env, inference: service } = await startInference({ modelsListed });
      expect(await findingsOf(inference, env)).toMatchObject([{ state: 'pass', advice: null }]);
      const { outcomes } = service.totals();
      expect(outcomes).toMatchObject(modelsListed ? { listed: 1 } : { answered: 1 });
    },
  );

  it.each([
    [{ EARSHOT_INFERENCE_API_KEY: 'mistyped' }, /refuses the key .*EARSHOT_INFERENCE_API_KEY/],
    [{ EARSHOT_INFERENCE_API_KEY: otherProject.key }, new RegExp(otherProject.models[0])],
    [{ EARSHOT_INFERENCE_URL: 'http://127.0.0.1:9' }, /127\.0\.0\.1:9/],
  ])('reports the fault of %j', async (changes, words) => {
    const { env } = await startInference();
    const [found, ...others] = await findingsOf(inference, { ...env, ...changes });
    expect(found?.state).toBe('fail');
    expect(`${found?.message} ${found?.advice}`).toMatch(words);
    expect(found?.message).not.toContain('mistyped');
    expect(others).toEqual([]);
  });

  it('warns of a model whose answers are refused', async () => {
    const { env } = await startInference();
    const folder = temporaryDirectory();
    const refusal = { model, refused: 'it is empty', answer: '' };
    const result = doneWith('A text.', { model: null }, { refusal });
    await putSummaries(join(folder, 'data'), Array(3).fill({ result }));
    const [, found] = await findingsOf(inference, env, folder);
    expect(found).toMatchObject({ check: 'summaries', state: 'warn' });
    expect(found?.message).toContain('are refused: it is empty.');
  });
});

describe('the doctor with faulty settings for summaries', () => {
  it('reports the faults under configuration, and checks nothing else', async () => {
    const folder = temporaryDirectory();
    writeFileSync(
      join(folder, 'earshot.config.ts'),
      `export default { subscriptions: { alps: { summary: { each: { filter: "Naem eq 'x'" } } } } };\n`,
    );
    const env = { EARSHOT_INFERENCE_API_KEY: 'a-key', EARSHOT_SUMMARY_TOKENS_PER_DAY: 'many' };
    const findings = await findingsOf(['configuration', ...inference], env, folder);
    const texts = findings.map(({ state, message, advice }) => `${state} ${message} ${advice}`);
    for (const words of [
      /^fail EARSHOT_INFERENCE_API_KEY is set, but EARSHOT_INFERENCE_MODEL is not/,
      /^fail EARSHOT_SUMMARY_TOKENS_PER_DAY: must be a whole number/,
      /^fail subscriptions\.alps\.summary\.each\.filter: [\s\S]*Naem.*[\s\S]*Fix it in earshot\.config\.ts\.$/,
      /^skipped Not checked, because "configuration" failed/,
    ]) {
      expect(texts.filter((text) => words.test(text))).toHaveLength(1);
    }
    expect(texts.join()).not.toContain('a-key');
    const { out } = await runCommand(['doctor'], {
      env: { ...env, EARSHOT_DATA_DIR: join(folder, 'data') },
      workingDir: folder,
      fetch: () => Promise.reject(new Error('no network')),
    });
    expect(out).toMatch(/\n {33}Naem eq 'x'\n {33}\^{4}\n/);
  });

  it('warns of a rule filter that can match nothing, wrapped to the terminal width', async () => {
    const folder = temporaryDirectory();
    writeFileSync(
      join(folder, 'earshot.config.ts'),
      `export default { subscriptions: { alps: { summary: { each: { filter: "Collection/Name eq 'SENTINEL2'" } } } } };\n`,
    );
    const found = await findingsOf(['configuration', 'filters'], {}, folder);
    const warned = found.filter(({ state }) => state === 'warn');
    expect(warned).toMatchObject([
      {
        check: 'filters',
        message: expect.stringMatching(/^subscriptions\.alps\.summary\.each\.filter: .*SENTINEL2/),
        advice: expect.stringMatching(/SENTINEL-2.* The filter is in earshot\.config\.ts/),
      },
    ]);
    expect(found.filter(({ check }) => check === 'filters')).toHaveLength(1);
    const { out } = await runCommand(['doctor'], {
      env: { EARSHOT_DATA_DIR: join(folder, 'data'), NO_COLOR: '1' },
      workingDir: folder,
      fetch: () => Promise.reject(new Error('no network')),
      isTTY: true,
      columns: 90,
    });
    const indent = ' '.repeat(31);
    expect(out).toContain(`  filters               subscriptions.alps.summary.each.filter:`);
    const wrapped = out.split('\n').filter((line) => line.startsWith(indent));
    expect(wrapped.length).toBeGreaterThan(5);
    expect(Math.max(...wrapped.map((line) => line.length))).toBeLessThanOrEqual(90);
  });
});

const running = new AbortController().signal;

/** Returns a step whose findings have these states. */
function step(name: string, needs: string[], ...states: Finding['state'][]): Step {
  return {
    name,
    needs,
    run: async () => states.map((state) => ({ check: name, state, message: state })),
  };
}

async function statesOf(steps: Step[]) {
  const findings: Finding[] = [];
  for await (const finding of runSteps(steps, running)) findings.push(finding);
  return findings.map(({ check, state, message }) => [check, state, message]);
}

describe('a step', () => {
  it('runs in order after the steps it needs have passed or warned, with all its findings', async () => {
    const steps = [
      step('one', [], 'pass', 'warn'),
      step('two', ['one']),
      step('three', ['one', 'two'], 'pass'),
    ];
    expect(await statesOf(steps)).toEqual([
      ['one', 'pass', 'pass'],
      ['one', 'warn', 'warn'],
      ['three', 'pass', 'pass'],
    ]);
  });

  it('is skipped after a failure, and the whole chain names the first cause', async () => {
    const steps = [
      step('one', [], 'pass', 'fail'),
      step('two', ['one'], 'pass'),
      step('three', ['two'], 'pass'),
      step('four', [], 'pass'),
    ];
    const because = 'Not checked, because "one" failed.';
    expect(await statesOf(steps)).toEqual([
      ['one', 'pass', 'pass'],
      ['one', 'fail', 'fail'],
      ['two', 'skipped', because],
      ['three', 'skipped', because],
      ['four', 'pass', 'pass'],
    ]);
  });

  it('is skipped after a step that skipped itself', async () => {
    expect(await statesOf([step('one', [], 'skipped'), step('two', ['one'], 'pass')])).toEqual([
      ['one', 'skipped', 'skipped'],
      ['two', 'skipped', 'Not checked, because "one" was skipped.'],
    ]);
  });

  it.each([
    [
      'at once',
      () => {
        throw new AppError('unavailable', 'No way.', { advice: 'Repeat it.' });
      },
    ],
    [
      'later',
      () => Promise.reject(new AppError('unavailable', 'No way.', { advice: 'Repeat it.' })),
    ],
  ])('that throws %s counts as failed, and the other steps run', async (_when, run) => {
    const findings: Finding[] = [];
    const steps = [{ name: 'one', needs: [], run }, step('two', [], 'pass')];
    for await (const finding of runSteps(steps, running)) findings.push(finding);
    expect(findings).toEqual([
      {
        check: 'one',
        state: 'fail',
        message: 'No way.',
        advice: 'Repeat it.',
        code: 'unavailable',
      },
      { check: 'two', state: 'pass', message: 'pass' },
    ]);
  });

  it('does not start after a request to stop', async () => {
    const stopping = new AbortController();
    const seen: string[] = [];
    const steps = [step('one', [], 'pass'), step('two', [], 'pass')];
    for await (const { check } of runSteps(steps, stopping.signal)) {
      seen.push(check);
      stopping.abort();
    }
    expect(seen).toEqual(['one']);
  });
});
