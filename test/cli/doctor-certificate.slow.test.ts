/** The doctor's findings about a certificate that earshot manages, against Pebble. */
import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../helpers/free-ports.ts';
import { hasPebble, type PebbleOptions, startPebble } from '../helpers/pebble.ts';
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
  it('reports each state of a certificate, from none to a failed renewal', {
    timeout: 60_000,
  }, async () => {
    const { run, finding, pebble } = await openContext();
    expect(await finding('renewal')).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(/no certificate of this authority for localhost yet/),
      advice: expect.stringMatching(/earshot start/),
    });
    expect(await finding('authority')).toMatchObject({ state: 'pass' });
    expect(await finding('challenge')).toMatchObject({ state: 'pass' });
    expect(await run(['certificate', 'renew'])).toMatchObject({ code: 0 });
    expect(await finding('renewal')).toMatchObject({
      state: 'pass',
      message: expect.stringMatching(/^Next renewal: /),
    });
    await pebble.stop();
    expect(await run(['certificate', 'renew', '--force'])).toMatchObject({ code: 1 });
    const failed = await finding('renewal');
    expect(failed).toMatchObject({ state: 'warn' });
    expect(failed?.message).toMatch(/^The last attempt failed\. .*unreachable/);
    expect(await finding('renewal', {}, 85 * dayUs)).toMatchObject({ state: 'fail' });
  });

  it('reports when another program has the port', { timeout: 60_000 }, async () => {
    const { finding } = await openContext();
    const port = await freePort();
    const other = createServer((_request, response) => response.end('hello'));
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const taken = await finding('challenge', { EARSHOT_ACME_HTTP_LISTEN: `127.0.0.1:${port}` });
    expect(taken).toMatchObject({ state: 'fail' });
    expect(`${taken?.message} ${taken?.advice}`).toMatch(/another program uses this port/);
  });

  it('reports that the authority is unreachable', {
    timeout: 60_000,
  }, async () => {
    const { finding } = await openContext();
    const down = await finding('authority', await closedPort());
    expect(down).toMatchObject({
      state: 'fail',
      message: expect.stringMatching(/unreachable/),
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
    expect(readdirSync(folder).toSorted()).toEqual(['certificate.json', 'state.json']);
    chmodSync(saved, 0o644);
    expect(await finding('owner-only files')).toMatchObject({ state: 'fail' });
    expect(await finding('renewal')).toMatchObject({
      state: 'fail',
      message: expect.stringMatching(/other users can read or change the file/),
    });
  });
});
