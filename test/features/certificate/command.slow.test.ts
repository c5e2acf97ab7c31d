/** `earshot certificate` against Pebble, as a user types it, including common mistakes; and the doctor's findings. */
import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Finding } from '../../../src/core/terms/evaluation.ts';
import { expectEnd, printedJson, runCommand } from '../../helpers/fake-io.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { writeKeyPair } from '../../helpers/key-pair.ts';
import { hasPebble, startPebble } from '../../helpers/pebble.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const dayUs = 86_400_000_000;

/** Starts Pebble; returns the environment of a user who has set every variable correctly. */
async function openContext() {
  const pebble = await startPebble({ validitySeconds: 90 * 86_400 });
  const folder = temporaryDirectory();
  const ca = join(folder, 'ca.pem');
  writeFileSync(ca, pebble.caPem);
  const env = {
    EARSHOT_TLS: 'acme',
    EARSHOT_PUBLIC_URL: 'https://localhost',
    EARSHOT_DATA_DIR: join(folder, 'data'),
    EARSHOT_LISTEN: `127.0.0.1:${await freePort()}`,
    EARSHOT_ENDPOINT_USERNAME: 'catalogue',
    EARSHOT_ENDPOINT_PASSWORD: 'a long password',
    EARSHOT_ACME_DIRECTORY: pebble.directoryUrl,
    EARSHOT_ACME_CA: ca,
    EARSHOT_ACME_AGREE: 'yes',
    EARSHOT_ACME_HTTP_LISTEN: `127.0.0.1:${pebble.ports.http}`,
    EARSHOT_CATALOGUE_URL: 'http://127.0.0.1:1',
    EARSHOT_TOKEN_URL: 'http://127.0.0.1:1/token',
  };
  const run = (argv: string, changed: Record<string, string> = {}, laterUs = 0) =>
    runCommand(argv.split(' '), {
      nowUs: () => Date.now() * 1000 + laterUs,
      env: { ...env, ...changed },
    });
  const finding = async (check: string, laterUs = 0) => {
    const { out } = await run('doctor --json', {}, laterUs);
    return (JSON.parse(out) as Finding[]).find((one) => one.check === check);
  };
  return { pebble, env, run, finding };
}

describe.skipIf(!hasPebble)('earshot certificate (needs pebble)', { timeout: 60_000 }, () => {
  it('issues and shows a certificate, does not replace a valid one, and shows a failed renewal', async () => {
    const { run, finding, pebble, env } = await openContext();
    const none = await expectEnd(run('certificate show'), 1, /There is no certificate yet/);
    expect(none.out).toMatch(/^critical: certificate\n[\s\S]*certificate renew/);
    expect((await finding('certificate'))?.text).toMatch(/no certificate for localhost yet/);
    expect(await run('certificate renew')).toMatchObject({ code: 0 });
    const shown = await printedJson(run('certificate show --json'));
    expect(shown).toMatchObject({
      ...{ source: 'acme', names: ['localhost'], daysLeft: 89, authority: pebble.directoryUrl },
      ...{ failures: 0, lastFailure: null },
    });
    expect((await run('certificate show')).out).toMatch(/^ {2}names +localhost$/m);
    expect((await finding('certificate'))?.text).toMatch(/^Next renewal: /);
    const again = await run('certificate renew');
    expect(again.err).toMatch(/No renewal is due.*--force/);
    expect(await run('certificate renew --force')).toMatchObject({ code: 0 });
    const renewed = await printedJson(run('certificate show --json'));
    expect(renewed.lastAttemptAt).not.toBe(shown.lastAttemptAt);
    const folder = join(env.EARSHOT_DATA_DIR, 'acme');
    expect(readdirSync(folder).toSorted()).toEqual(['certificate.json', 'state.json']);
    const moved = { EARSHOT_PUBLIC_URL: 'https://new.example.org' };
    expect((await run('certificate show', moved)).out).not.toContain('renewal (UTC)');
    await pebble.stop();
    expect(await run('certificate renew --force')).toMatchObject({ code: 1 });
    const failed = await finding('certificate');
    expect(failed).toMatchObject({ level: 'warning' });
    expect(failed?.text).toMatch(/^The last attempt failed\. .*unreachable.*EARSHOT_ACME_/);
    expect(await printedJson(run('certificate show --json'))).toMatchObject({ failures: 1 });
    chmodSync(join(folder, 'certificate.json'), 0o644);
    for (const check of ['certificate', 'secret files']) {
      expect(await finding(check, dayUs)).toMatchObject({ level: 'critical' });
    }
  });

  it('says what to fix after a mistake', async () => {
    const { run, pebble } = await openContext();
    const other = createServer((_request, response) => response.end('hello'));
    const port = await freePort();
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const page = `https://localhost:${pebble.ports.management}/roots/0`;
    for (const [changed, words] of [
      [{ EARSHOT_TLS: '' }, /EARSHOT_TLS is files: .*EARSHOT_TLS=acme/],
      [{ EARSHOT_ACME_CA: '' }, /unreachable: .*intermediate certificates.*EARSHOT_ACME_CA/],
      [{ EARSHOT_ACME_DIRECTORY: page }, /the URL of an ACME directory/],
      [{ EARSHOT_ACME_HTTP_LISTEN: '127.0.0.1:0' }, /open the port of EARSHOT_ACME_CHALLENGE/],
      [
        { EARSHOT_ACME_HTTP_LISTEN: `127.0.0.1:${port}` },
        /in use, not permitted.*EARSHOT_ACME_HTTP_LISTEN/,
      ],
    ] as const) {
      const { code, err } = await run('certificate renew', changed);
      expect(code).toBeGreaterThan(0);
      expect(err).toMatch(words);
      expect(err).not.toMatch(/fault of the program|at .*\.ts:\d/);
    }
  });
});

it('earshot certificate show shows certificate files, too', async () => {
  const { files } = await writeKeyPair(temporaryDirectory());
  const env = { EARSHOT_TLS_CERT: files.cert, EARSHOT_TLS_KEY: files.key };
  const nowUs = () => Date.now() * 1000;
  expect(await printedJson(runCommand('certificate show --json', { env, nowUs }))).toMatchObject({
    ...{ source: 'files', names: ['localhost', '127.0.0.1'], daysLeft: 29 },
    ...{ authority: null, failures: null },
  });
});
