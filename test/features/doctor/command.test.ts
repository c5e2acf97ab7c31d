/** `earshot doctor`: from an empty machine to a working subscription. */
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { otherProject } from '../../../src/sandbox/settings.ts';
import { runCommand } from '../../helpers/fake-io.ts';
import { openStore } from '../../helpers/store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { registration } from '../alerts/watch-context.ts';
import { account, endpointPair } from '../subscriptions/account-context.ts';
import { model, startInference } from '../summary/summary-context.ts';
import { openDoctorContext, type PrintedFinding } from './context.ts';

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

/** Writes `earshot.config.ts`; returns its folder. */
function folderWith(config: string): string {
  const folder = temporaryDirectory();
  writeFileSync(join(folder, 'earshot.config.ts'), `export default ${config};\n`);
  return folder;
}

const shown = (findings: readonly PrintedFinding[], checks = /./) =>
  findings.filter(({ check }) => checks.test(check)).map((one) => `${one.level} ${one.check}`);

const named = (findings: readonly PrintedFinding[], name: string) =>
  findings.find(({ check }) => check === name);

const textOf = ({ text, evidence, nextStep }: PrintedFinding) =>
  [text, ...evidence, nextStep].join('\n');

const endpoint = { EARSHOT_ENDPOINT_USERNAME: 'a', EARSHOT_ENDPOINT_PASSWORD: 'a-long-password' };

describe('the doctor before anything is set up', () => {
  it('reports what is missing in order, creates nothing, and exits 2, because only settings are missing', async () => {
    const folder = temporaryDirectory();
    const { code, findings } = await findingsWith({}, folder);
    expect(code).toBe(2);
    const missing = findings.filter(({ level }) => level === 'critical' || level === 'unknown');
    expect(shown(missing).join(', ')).toBe(
      'critical configuration, critical configuration, unknown database, unknown clock, critical public URL, unknown public address, unknown endpoint, unknown login, unknown subscriptions, unknown certificate',
    );
    for (const { level, nextStep } of findings) {
      if (level === 'warning' || level === 'critical') expect(nextStep).toMatch(/\w/);
    }
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  it('reports every problem of the variables and of earshot.config.ts, and continues with the rest', async () => {
    const folder = folderWith("{ subscriptions: { S2: {}, s1: { events: ['moved'] } } }");
    const env = {
      EARSHOT_LISTEN: 'nowhere',
      EARSHOT_PUBLIC_URI: 'https://earshot.example.org',
      EARSHOT_PUBLIC_URL: 'https://127.0.0.1:1',
      EARSHOT_PROBE_CA: join(folder, 'missing.pem'),
      EARSHOT_ACCOUNT_TOTP: 'not a code: 1',
    };
    const { findings } = await findingsWith(env, folder);
    const texts = findings.filter(({ check }) => check === 'configuration').map(textOf);
    for (const words of [
      /EARSHOT_LISTEN: must be host:port/,
      /EARSHOT_PUBLIC_URI is not a known variable[\s\S]*EARSHOT_PUBLIC_URL/,
      /file of EARSHOT_PROBE_CA .*missing\.pem/,
      /EARSHOT_ACCOUNT_TOTP: must be six digits/,
      /subscriptions\.S2:/,
      /subscriptions\.s1\.events/,
    ]) {
      expect(texts.filter((text) => words.test(text))).toHaveLength(1);
    }
    expect(JSON.stringify(findings)).not.toContain('not a code');
    expect(named(findings, 'login')?.text).toContain('because of "configuration"');
    expect(shown(findings, /^public/)).toEqual(['warning public URL', 'critical public address']);
  });

  it('prints aligned lines as results arrive, the next step below them, and a summary on stderr', async () => {
    const env = { EARSHOT_DATA_DIR: join(temporaryDirectory(), 'data') };
    const options = { env, workingDir: temporaryDirectory(), fetch: noNetwork };
    const plain = await runCommand(['doctor'], options);
    expect(plain.err).toMatch(/^earshot: [45] ok, [12] warning, 3 critical, \d+ unknown\.\n/);
    const lines = plain.out.split('\n');
    const at = lines.findIndex((line) => line.includes('public URL'));
    expect(lines[at]).toMatch(/^critical {2}public URL {12}EARSHOT_PUBLIC_URL is missing/);
    expect(lines[at + 1]).toMatch(/^ {32}Set EARSHOT_PUBLIC_URL/);
    expect(plain.out).not.toContain('\u001b');
    const coloured = await runCommand(['doctor'], { ...options, isTTY: true });
    expect(coloured.out).toContain('\u001b[31mcritical\u001b[39m');
  });
});

const otherCredentials = {
  EARSHOT_ENDPOINT_USERNAME: 'earshot-first',
  EARSHOT_ENDPOINT_PASSWORD: 'another-word',
};

describe('the doctor with a receiver and a catalogue', () => {
  it('finds no problem once a subscription is registered', async () => {
    const { doctor, earshot, complaints } = await openDoctorContext();
    const registered = await earshot(['register', '--event', 'created', '--yes']);
    expect(registered).toMatchObject({ code: 0, err: expect.stringContaining('Done') });
    const { code, findings } = await doctor();
    expect(findings.map(({ check }) => check).join(', ')).toBe(
      'configuration, data directory, secret files, free space, database, clock, filters, public URL, public address, endpoint, endpoint login, login, catalogue, subscription default, certificate, sinks, inference service, alerts',
    );
    const others = findings.filter(({ level }) => level !== 'ok').map(({ check }) => check);
    expect(others.filter((check) => check !== 'free space')).toEqual(['alerts']);
    expect(code).toBe(0);
    const text = (await earshot(['doctor'])).out + JSON.stringify(findings);
    for (const { password } of [account, endpointPair]) expect(text).not.toContain(password);
    // In the log of the receiver.
    expect(complaints()).toEqual([]);
    await doctor(otherCredentials);
    expect(JSON.stringify(complaints())).toContain('login failed');
  });

  it('demands a public certificate and address with a catalogue elsewhere', async () => {
    const { doctor } = await openDoctorContext();
    const untrusted = await doctor({ EARSHOT_PROBE_CA: '' });
    expect([untrusted.code, named(untrusted.findings, 'endpoint')?.level]).toEqual([1, 'critical']);
    const { findings } = await doctor({
      EARSHOT_CATALOGUE_URL: 'https://catalogue.invalid',
      // Without a token, the doctor sends no request to that catalogue.
      EARSHOT_ACCOUNT_PASSWORD: 'mistyped',
    });
    expect(shown(findings, /^(public address|endpoint$)/)).toEqual([
      'warning public address',
      'warning endpoint',
    ]);
  });
});

const withSinks = (sinks: string) => folderWith(`{ subscriptions: { alps: {} }, sinks: ${sinks} }`);

describe('the doctor on sinks, alerts and filters', () => {
  it('finds programs by path and on PATH, and checks valid sinks next to faulty ones', async () => {
    const folder = withSinks(
      `{ a: { command: ['act'] }, b: { command: ['./act'] }, c: { command: ['gone'] },
        d: { command: ['./text'] }, e: { webhook: 'https://a.example', secretFile: 'gone', ca: 'gone' } }`,
    );
    writeFileSync(join(folder, 'act'), '#!/bin/sh\n');
    chmodSync(join(folder, 'act'), 0o700);
    writeFileSync(join(folder, 'text'), '');
    const env = { PATH: `/nonexistent:${folder}`, EARSHOT_ALERT_COMMAND: 'act --urgent' };
    const { findings } = await findingsWith(env, folder);
    expect(shown(findings, /^(sink|alerts)/).join(', ')).toBe(
      'ok sink a, ok sink b, critical sink c, critical sink d, critical sink e, critical sink e, ok alerts',
    );
  });

  it('reports faults of the whole file under configuration, and skips the sinks', async () => {
    const folder = withSinks("{ bus: { webhook: 'https://example.org/', timeoutSeconds: 0 } }");
    const { findings } = await findingsWith({ EARSHOT_ALERT_URL: 'ftp://secret-part/' }, folder);
    const texts = findings.filter(({ check }) => check === 'configuration').map(textOf);
    expect(texts.join()).toMatch(/sinks\.bus\.timeoutSeconds[\s\S]*earshot\.config\.ts/);
    expect(texts.filter((text) => text.includes('EARSHOT_ALERT_URL'))).toHaveLength(1);
    expect(texts.join()).not.toContain('secret-part');
    expect(shown(findings, /^(sinks|alerts)/)).toEqual(['unknown sinks', 'unknown alerts']);
  });

  it('warns of filters that can match nothing, and of unknown subscriptions', async () => {
    const filter = `"Collection/Name eq 'SENTINEL2'"`;
    const folder = folderWith(
      `{ subscriptions: { alps: { summary: { each: { filter: ${filter} } } } },
         sinks: { bus: { command: ['sh'], subscriptions: ['alsp', 'nile'], filter: ${filter} } } }`,
    );
    const store = await openStore({ dataDir: join(folder, 'data') });
    await store.administration.commit({ save: registration({ name: 'nile' }) });
    await store.administration.commit({ removeRegistration: 'nile' });
    await store.close();
    const { findings } = await findingsWith({}, folder);
    const warned = findings.filter(({ check }) => check === 'filters');
    expect(warned.map(({ level, text }) => `${level} ${text}`)).toEqual([
      expect.stringMatching(/^ok The filters of the subscriptions/),
      expect.stringMatching(/^warning sinks\.bus\.filter: .*SENTINEL2/),
      'warning sinks.bus.subscriptions: unknown subscription alsp.',
      expect.stringMatching(/^warning subscriptions\.alps\.summary\.each\.filter/),
    ]);
    expect(warned[1]?.nextStep).toMatch(/SENTINEL-2.* earshot\.config\.ts/);
  });
});

const inference = /^(inference service|summaries)$/;

it('the doctor needs no language model, and warns if summaries are requested', async () => {
  const plain = await findingsWith({});
  expect(shown(plain.findings, inference)).toEqual(['ok inference service']);
  const folder = folderWith("{ subscriptions: { alps: { summary: 'each' } } }");
  const { findings } = await findingsWith({}, folder);
  expect(shown(findings, inference)).toEqual(['warning inference service']);
});

it.each([
  ['ok', {}, /./],
  ['critical', { EARSHOT_INFERENCE_API_KEY: 'mistyped' }, /EARSHOT_INFERENCE_API_KEY/],
  ['critical', { EARSHOT_INFERENCE_API_KEY: otherProject.key }, new RegExp(`no model ${model}`)],
  ['critical', { EARSHOT_INFERENCE_URL: 'http://127.0.0.1:9' }, /127\.0\.0\.1:9/],
])('the inference service is %s with %j', async (level, changes, words) => {
  const { env } = await startInference();
  const { findings } = await findingsWith({ ...env, ...changes });
  const found = findings.filter(({ check }) => inference.test(check));
  expect(found).toMatchObject([{ level }]);
  expect(found.map(textOf).join()).toMatch(words);
  expect(JSON.stringify(found)).not.toContain('mistyped');
});

it.each([
  ['11character', ['ok', 'warning']],
  ['12characters', ['ok']],
])('the password %s of the private listener causes %j', async (password, levels) => {
  const env = { ...endpoint, EARSHOT_TLS: 'off', EARSHOT_CONSOLE_PASSWORD: password };
  const { findings } = await findingsWith(env);
  const found = findings.filter(({ check }) => check === 'configuration');
  expect(found.map(({ level }) => level)).toEqual(levels);
  expect(JSON.stringify(findings)).not.toContain(password);
});
