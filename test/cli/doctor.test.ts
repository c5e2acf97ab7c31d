/** `earshot doctor`: from nothing at all to a subscription that delivers. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openDoctorWorld, type PrintedFinding, secrets } from './doctor-world.ts';
import { runCommand } from './fake-io.ts';

const noNetwork: typeof fetch = () => Promise.reject(new Error('no network'));

const stateOf = (findings: PrintedFinding[], check: string) =>
  findings.filter((finding) => finding.check === check).map(({ state }) => state);

describe('the doctor before anything is set up', () => {
  async function findingsWith(env: Record<string, string>, workingDir = temporaryDirectory()) {
    const { code, out } = await runCommand(['doctor', '--json'], {
      env: { EARSHOT_DATA_DIR: join(workingDir, 'data'), ...env },
      workingDir,
      fetch: noNetwork,
    });
    const findings: PrintedFinding[] = JSON.parse(out);
    return { code, findings };
  }

  it('says what is missing, makes nothing, and exits 1', async () => {
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
      'skipped this host',
      'skipped certificate files',
      'skipped port',
      'skipped certificate',
      'skipped endpoint login',
      'skipped login required',
      'skipped token',
      'skipped catalogue',
      'skipped subscriptions',
      'skipped limits',
      'skipped inference key',
      'skipped sinks',
      'warn alerts',
    ]);
    for (const { state, advice } of findings) {
      if (state === 'warn' || state === 'fail') expect(advice).toMatch(/\w/);
    }
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  it('says of a folder named by --data-dir that there is no database, and checks nothing', async () => {
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

  it('tells every problem of the variables and of earshot.config.ts', async () => {
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
    const told = findings.filter(({ check }) => check === 'configuration');
    const texts = told.map(({ message, advice }) => `${message} ${advice}`);
    for (const words of [
      /EARSHOT_LISTEN: must be host:port/,
      /EARSHOT_PUBLIC_URI is not a variable.*EARSHOT_PUBLIC_URL/,
      /EARSHOT_SUBSCRIPTIONS_MAX: must be a whole number/,
      /EARSHOT_PROBE_CA names .*missing\.pem/,
      /EARSHOT_ACCOUNT_TOTP: must be six digits/,
      /S2/,
      /s1\.events/,
    ]) {
      expect(texts.filter((text) => words.test(text))).toHaveLength(1);
    }
    expect(JSON.stringify(findings)).not.toContain('not a code');
    // What needs a configuration that could not be read is skipped for that reason.
    const token = findings.find(({ check }) => check === 'token');
    expect(token?.message).toContain('"configuration" failed');
  });

  it('goes on with what can be read', async () => {
    const { findings } = await findingsWith({
      EARSHOT_TLS: 'maybe',
      EARSHOT_PUBLIC_URL: 'https://127.0.0.1:1',
    });
    expect(stateOf(findings, 'configuration')).toContain('fail');
    expect(stateOf(findings, 'public URL')).toEqual(['warn']);
    expect(stateOf(findings, 'public address')).toEqual(['fail']);
    expect(stateOf(findings, 'port')).toEqual(['fail']);
    expect(stateOf(findings, 'certificate')).toEqual(['skipped']);
  });

  it('prints aligned lines as they are known, advice below, and a summary on stderr', async () => {
    const env = { EARSHOT_DATA_DIR: join(temporaryDirectory(), 'data') };
    const workingDir = temporaryDirectory();
    const plain = await runCommand(['doctor'], { env, workingDir, fetch: noNetwork });
    expect(plain.code).toBe(1);
    expect(plain.err).toMatch(/^earshot: [23] passed, [12] warnings?, 3 failed, 16 skipped\.\n$/);
    const lines = plain.out.split('\n');
    expect(lines).toContain(
      'fail     public URL            There is no EARSHOT_PUBLIC_URL that can be used.',
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

  it('writes no faster than its reader takes it', async () => {
    const env = { EARSHOT_DATA_DIR: join(temporaryDirectory(), 'data') };
    const options = { env, workingDir: temporaryDirectory(), fetch: noNetwork, slowReader: true };
    expect((await runCommand(['doctor', '--json'], options)).err).toContain('3 failed');
  });
});

describe('the doctor beside a receiver and a catalogue', () => {
  it('finds nothing wrong once a subscription is registered', async () => {
    const { doctor, earshot, env } = await openDoctorWorld();
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
      'warn name',
      'warn public address',
      'pass this host',
      'pass certificate files',
      'pass port',
      'warn certificate',
      'pass certificate validity',
      'pass TLS version',
      'pass endpoint login',
      'pass login required',
      'pass token',
      'pass catalogue',
      'pass subscription default',
      'pass limits',
      'skipped inference key',
      'skipped sinks',
      'warn alerts',
    ]);
    expect(code).toBe(0);
    expect(findings.find(({ check }) => check === 'limits')?.message).toBe(
      '1 of 2 running, 1 of 10 in all.',
    );
    const text = (await earshot(['doctor'])).out + JSON.stringify(findings);
    for (const secret of Object.values(secrets)) expect(text).not.toContain(secret);
    expect(text).not.toContain(env.EARSHOT_ACCOUNT_PASSWORD);
  });

  it('leaves nothing in the log of the receiver, unless it has other credentials', async () => {
    const { doctor, receiverLog } = await openDoctorWorld();
    const { findings } = await doctor();
    expect(stateOf(findings, 'login required')).toEqual(['pass']);
    expect(receiverLog).toEqual([]);
    await doctor({ EARSHOT_ENDPOINT_PASSWORD: 'another-word' });
    expect(receiverLog).toContain('wrong or no credentials');
  });

  it('says that the receiver does not run', async () => {
    const { doctor, stopReceiver } = await openDoctorWorld();
    await stopReceiver();
    const { code, findings } = await doctor();
    expect(code).toBe(1);
    expect(findings.find(({ check }) => check === 'port')).toMatchObject({
      state: 'fail',
      advice: expect.stringContaining('earshot start'),
    });
    expect(stateOf(findings, 'endpoint login')).toEqual(['skipped']);
    // What has nothing to do with it is looked at all the same.
    expect(stateOf(findings, 'catalogue')).toEqual(['pass']);
    expect(stateOf(findings, 'subscriptions')).toEqual(['skipped']);
  });

  it('says that the receiver has other credentials, and that the account is not let in', async () => {
    const { doctor } = await openDoctorWorld();
    const { findings } = await doctor({
      EARSHOT_ENDPOINT_PASSWORD: 'another-word',
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

  it('says that the certificate is not publicly trusted without EARSHOT_PROBE_CA', async () => {
    const { doctor } = await openDoctorWorld();
    const { code, findings } = await doctor({ EARSHOT_PROBE_CA: '' });
    expect(code).toBe(1);
    expect(stateOf(findings, 'certificate')).toEqual(['fail']);
    expect(stateOf(findings, 'public address')).toEqual(['fail']);
  });

  it('says that a subscription was paused by hand', async () => {
    const { doctor, earshot, sandbox } = await openDoctorWorld();
    await earshot(['register', '--event', 'created', '--yes']);
    const [subscription] = sandbox.subscriptions();
    const form = { grant_type: 'password', client_id: 'cdse-public', username: 'me' };
    const body = new URLSearchParams({ ...form, password: secrets.account });
    const answer = await fetch(sandbox.tokenUrl, { method: 'POST', body });
    const token = (await answer.json()) as { access_token: string };
    await fetch(`${sandbox.catalogueUrl}/odata/v1/Subscriptions(${subscription?.id})`, {
      method: 'PATCH',
      headers: {
        Authorization: `Bearer ${token.access_token}`,
        'Content-Type': 'application/json',
      },
      body: JSON.stringify({ Status: 'paused' }),
    });
    const { code, findings } = await doctor();
    expect(code).toBe(0);
    expect(findings.find(({ check }) => check === 'subscription default')).toMatchObject({
      state: 'warn',
      message: expect.stringContaining('paused at the catalogue'),
    });
  });
});
