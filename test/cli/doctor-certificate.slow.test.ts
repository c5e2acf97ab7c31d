/** The doctor's findings about a certificate that earshot manages, against Pebble. */
import { chmodSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../helpers/free-ports.ts';
import { hasPebble, leaveAccount, type PebbleOptions, startPebble } from '../helpers/pebble.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { runCommand } from './fake-io.ts';

const dayUs = 86_400_000_000;
interface Shown {
  check: string;
  state: string;
  message: string;
  advice: string | null;
}

async function openContext(options: PebbleOptions = {}) {
  const pebble = await startPebble({ validitySeconds: 90 * 86_400, ...options });
  const folder = temporaryDirectory();
  writeFileSync(join(folder, 'ca.pem'), pebble.caPem);
  const listen = await freePort();
  const env = {
    EARSHOT_TLS: 'acme',
    EARSHOT_PUBLIC_URL: 'https://localhost',
    EARSHOT_DATA_DIR: join(folder, 'data'),
    EARSHOT_LISTEN: `127.0.0.1:${listen}`,
    EARSHOT_ENDPOINT_USERNAME: 'catalogue',
    EARSHOT_ENDPOINT_PASSWORD: 'a long password',
    EARSHOT_ACME_DIRECTORY: pebble.directoryUrl,
    EARSHOT_ACME_CA: join(folder, 'ca.pem'),
    EARSHOT_ACME_AGREE: 'yes',
    EARSHOT_ACME_HTTP_LISTEN: `127.0.0.1:${pebble.ports.http}`,
    // With own root certificates this is a trial: the challenge is requested at the port above, not at 80.
    EARSHOT_PROBE_CA: join(folder, 'ca.pem'),
    EARSHOT_CATALOGUE_URL: 'http://127.0.0.1:1',
    EARSHOT_TOKEN_URL: 'http://127.0.0.1:1/token',
  };
  const run = (argv: string[], changed: Record<string, string> = {}, laterUs = 0) =>
    runCommand(argv, { env: { ...env, ...changed }, nowUs: () => Date.now() * 1000 + laterUs });
  const finding = async (check: string, changed: Record<string, string> = {}, laterUs = 0) => {
    const { out } = await run(['doctor', '--json'], changed, laterUs);
    return (JSON.parse(out) as Shown[]).find((one) => one.check === check);
  };
  return { pebble, env, run, finding, folder };
}

const closedPort = async (): Promise<Record<string, string>> => {
  const port = await freePort();
  return { EARSHOT_ACME_DIRECTORY: `https://localhost:${port}/dir` };
};

describe.skipIf(!hasPebble)('the doctor, with EARSHOT_TLS=acme (Pebble)', () => {
  it('reports each state of a certificate, from none to overdue', { timeout: 60_000 }, async () => {
    const { run, finding } = await openContext();
    expect(await finding('renewal')).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(/no certificate yet, and none was ordered/),
      advice: expect.stringMatching(/earshot start/),
    });
    expect(await finding('authority')).toMatchObject({ state: 'pass' });
    expect(await finding('challenge')).toMatchObject({ state: 'pass' });
    expect(await run(['certificate', 'renew'])).toMatchObject({ code: 0 });
    expect(await finding('renewal')).toMatchObject({
      state: 'pass',
      message: expect.stringMatching(/^Last renewal: .* Next renewal: /),
    });
    const moved = { EARSHOT_PUBLIC_URL: 'https://new.example.org' };
    expect(await finding('renewal', moved)).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(/not for new\.example\.org/),
    });
    expect(await finding('renewal', {}, 70 * dayUs)).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(/renewal was due on .* no attempt/),
    });
    expect(await finding('renewal', {}, 85 * dayUs)).toMatchObject({ state: 'fail' });
  });

  it('reports the last error and the time of the next attempt', { timeout: 60_000 }, async () => {
    const { run, finding, pebble, env } = await openContext();
    await run(['certificate', 'renew']);
    leaveAccount(env.EARSHOT_DATA_DIR);
    await pebble.setAddress('127.0.0.9');
    expect(await run(['certificate', 'renew', '--force'])).toMatchObject({ code: 1 });
    const failed = await finding('renewal');
    expect(failed).toMatchObject({ state: 'warn' });
    expect(failed?.message).toMatch(
      /^The last attempt failed\. .*port 80 of localhost.* Next attempt: 20/,
    );
    expect(await finding('renewal', {}, 85 * dayUs)).toMatchObject({ state: 'fail' });
  });

  it('reports when another program answers the challenge, or none can', {
    timeout: 60_000,
  }, async () => {
    const { finding, env } = await openContext();
    const port = await freePort();
    const other = createServer((_request, response) => response.end('hello'));
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const taken = await finding('challenge', { EARSHOT_ACME_HTTP_LISTEN: `127.0.0.1:${port}` });
    expect(taken).toMatchObject({ state: 'fail' });
    expect(`${taken?.message} ${taken?.advice}`).toMatch(/another program uses this port/);
    // The listener is on 127.0.0.2, and the name resolves to 127.0.0.1.
    const elsewhere = await finding('challenge', {
      EARSHOT_ACME_HTTP_LISTEN: `127.0.0.2:${port}`,
    });
    expect(elsewhere).toMatchObject({ state: 'fail' });
    expect(elsewhere?.message).toMatch(/Another server answers on port .* of localhost/);
    const closed = await finding('challenge', {
      EARSHOT_ACME_HTTP_LISTEN: env.EARSHOT_ACME_HTTP_LISTEN.replace('.1:', '.2:'),
    });
    expect(closed?.message).toMatch(/The test of port .* failed: .*refused/);
    expect(closed?.advice).toMatch(/A and AAAA records .* certificate test/);
  });

  it('reports that the authority is unreachable, or requires a key', {
    timeout: 60_000,
  }, async () => {
    const { finding } = await openContext({
      eabKeys: { 'kid-1': 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajV' },
    });
    const bound = await finding('authority');
    expect(bound).toMatchObject({ state: 'fail', advice: expect.stringMatching(/EAB_KEY_ID/) });
    const down = await finding('authority', await closedPort());
    expect(down).toMatchObject({
      state: 'fail',
      message: expect.stringMatching(/cannot be reached/),
    });
    const unknown = await finding('authority', { EARSHOT_ACME_CA: '' });
    expect(`${unknown?.message} ${unknown?.advice}`).toMatch(/EARSHOT_ACME_CA/);
  });

  it('leaves no challenge answer behind, and rejects files that others can read', {
    timeout: 60_000,
  }, async () => {
    const { run, finding, env } = await openContext();
    await run(['certificate', 'renew']);
    await finding('challenge');
    const folder = join(env.EARSHOT_DATA_DIR, 'acme');
    const saved = join(folder, 'certificate.json');
    const challenges = join(folder, 'challenges');
    expect(existsSync(challenges) ? readdirSync(challenges) : []).toEqual([]);
    chmodSync(saved, 0o644);
    expect(await finding('owner-only files')).toMatchObject({ state: 'fail' });
    expect(await finding('renewal')).toMatchObject({
      state: 'fail',
      message: expect.stringMatching(/other users can read or change the file/),
    });
  });
});
