/** `earshot doctor` on summaries: their rules, and the inference service with its key and model. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  demoProject,
  type InferenceSettingsInput,
  otherProject,
} from '../../src/sandbox/inference/inference-settings.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import type { PrintedFinding } from './doctor-world.ts';
import { runCommand } from './fake-io.ts';

/** The findings of one check, or of two; nothing but this machine is asked. */
async function findingsOf(
  checks: readonly string[],
  env: Record<string, string>,
  workingDir = temporaryDirectory(),
) {
  const { out } = await runCommand(['doctor', '--json'], {
    env: { EARSHOT_DATA_DIR: join(workingDir, 'data'), ...env },
    workingDir,
    fetch: (input, init) => {
      const { hostname } = new URL(input instanceof Request ? input.url : input);
      return hostname === '127.0.0.1'
        ? fetch(input, init)
        : Promise.reject(new Error('no network'));
    },
  });
  const findings: PrintedFinding[] = JSON.parse(out);
  return findings.filter(({ check }) => checks.includes(check));
}

const inference = ['inference key', 'inference model'];

async function settingsAt(knobs: InferenceSettingsInput = {}) {
  const sandbox = await startSandbox({ now: Date.now, inference: knobs });
  onTestFinished(() => sandbox.close());
  const env = {
    EARSHOT_INFERENCE_URL: sandbox.inferenceUrl,
    EARSHOT_INFERENCE_API_KEY: demoProject.key,
    EARSHOT_INFERENCE_MODEL: demoProject.models[0],
  };
  return { env, sandbox };
}

describe('the doctor, where no model is configured,', () => {
  it('skips it, as summaries are nobody’s duty', async () => {
    expect(await findingsOf(inference, {})).toEqual([
      {
        check: 'inference key',
        state: 'skipped',
        message: 'No model is configured, and no rule asks for texts.',
        advice: null,
      },
    ]);
  });

  it('says what texts are made of where a rule asks for them', async () => {
    const warned = {
      check: 'inference key',
      state: 'warn',
      message: expect.stringContaining('made of the facts alone'),
      advice: expect.stringMatching(/EARSHOT_INFERENCE_API_KEY.*EARSHOT_INFERENCE_MODEL/),
    };
    expect(await findingsOf(inference, { EARSHOT_SUMMARY: 'digest' })).toEqual([warned]);
    const folder = temporaryDirectory();
    writeFileSync(
      join(folder, 'earshot.config.ts'),
      "export default { subscriptions: { alps: { summary: 'each' } } };\n",
    );
    expect(await findingsOf(inference, {}, folder)).toEqual([warned]);
    const endpoint = { EARSHOT_ENDPOINT_USERNAME: 'a', EARSHOT_ENDPOINT_PASSWORD: 'long-enough' };
    const indexless = { ...endpoint, EARSHOT_TLS: 'off', EARSHOT_INDEX: 'off' };
    expect(await findingsOf(['configuration'], indexless, folder)).toMatchObject([
      { state: 'fail', message: expect.stringMatching(/asks for summaries.*EARSHOT_INDEX is off/) },
    ]);
  });
});

describe('the doctor, where a model is configured,', () => {
  it('finds key and model right, without asking for a text', async () => {
    const { env, sandbox } = await settingsAt();
    expect(await findingsOf(inference, env)).toMatchObject([
      { check: 'inference key', state: 'pass', advice: null },
      { check: 'inference model', state: 'pass', advice: null },
    ]);
    expect(sandbox.inference.totals().outcomes).toEqual({ listed: 1 });
  });

  it('tells a wrong key, a model of another project, and a service that is not there', async () => {
    const { env } = await settingsAt();
    const wrong = await findingsOf(inference, { ...env, EARSHOT_INFERENCE_API_KEY: 'mistyped' });
    expect(wrong).toMatchObject([
      { state: 'fail', advice: expect.stringContaining('EARSHOT_INFERENCE_API_KEY') },
      { state: 'skipped' },
    ]);
    expect(JSON.stringify(wrong)).not.toContain('mistyped');
    const other = { ...env, EARSHOT_INFERENCE_API_KEY: otherProject.key };
    expect(await findingsOf(inference, other)).toMatchObject([
      { state: 'pass' },
      { state: 'fail', advice: expect.stringContaining(otherProject.models[0]) },
    ]);
    const away = { ...env, EARSHOT_INFERENCE_URL: 'http://127.0.0.1:9' };
    expect(await findingsOf(inference, away)).toMatchObject([
      { state: 'fail', message: expect.stringContaining('127.0.0.1:9') },
      { state: 'skipped' },
    ]);
  });

  it('asks a service that lists no models for one word', async () => {
    const { env, sandbox } = await settingsAt({ modelsListed: false });
    expect(await findingsOf(inference, env)).toMatchObject([{ state: 'pass' }, { state: 'pass' }]);
    expect(sandbox.inference.totals()).toMatchObject({ distinct: 1, repeated: 0 });
  });
});

describe('the doctor, where the settings of summaries have faults,', () => {
  it('tells them with the configuration, and looks no further', async () => {
    const folder = temporaryDirectory();
    writeFileSync(
      join(folder, 'earshot.config.ts'),
      `export default { subscriptions: { alps: { summary: { each: { filter: "Naem eq 'x'" } } } } };\n`,
    );
    const env = { EARSHOT_INFERENCE_API_KEY: 'a-key', EARSHOT_SUMMARY_TOKENS_PER_DAY: 'many' };
    const findings = await findingsOf(['configuration', ...inference], env, folder);
    const texts = findings.map(({ state, message, advice }) => `${state} ${message} ${advice}`);
    for (const words of [
      /^fail EARSHOT_INFERENCE_API_KEY is set, but no model is/,
      /^fail EARSHOT_SUMMARY_TOKENS_PER_DAY: must be a whole number/,
      /^fail subscriptions\.alps\.summary\.each\.filter: [\s\S]*Naem.*[\s\S]*Fix it in earshot\.config\.ts\.$/,
      /^skipped Not checked, as "configuration" failed/,
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

  it('warns of a filter that a rule has and that can match nothing, on a terminal in its width', async () => {
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
        advice: expect.stringMatching(/SENTINEL-2.* It stands in earshot\.config\.ts/),
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
