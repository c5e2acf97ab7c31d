/** First certificate and renewal with Caddy, an ACME server as strict as a public one. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openProgram } from '../features/certificate/acme-context.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { canListen, hasCaddy, startCaddyAuthority } from './certificate-caddy.ts';
import { savedSerial, shownSerial } from './certificate-context.ts';
import { ended } from './certificate-kill.ts';

const canRun =
  process.env.CI !== undefined || (hasCaddy && (await canListen(80)) && (await canListen(443)));
const issued = { timeout: 20_000 };
const hourUs = 3_600_000_000;

async function openContext(challenge: 'http-01' | 'tls-alpn-01') {
  const authority = await startCaddyAuthority();
  const folder = temporaryDirectory();
  const context = await createReceiverContext(folder);
  const env = {
    EARSHOT_TLS: 'acme',
    EARSHOT_TLS_CERT: '',
    EARSHOT_TLS_KEY: '',
    EARSHOT_PUBLIC_URL: 'https://localhost',
    EARSHOT_ACME_DIRECTORY: authority.directoryUrl,
    EARSHOT_ACME_CA: authority.rootFile,
    EARSHOT_ACME_AGREE: 'yes',
    EARSHOT_ACME_CHALLENGE: challenge,
    EARSHOT_ACME_HTTP_LISTEN: '127.0.0.1:80',
    EARSHOT_LISTEN: challenge === 'tls-alpn-01' ? '127.0.0.1:443' : '127.0.0.1:0',
    EARSHOT_DATA_DIR: context.dataDir,
  };
  const root = readFileSync(authority.rootFile, 'utf8');
  const command = (argv: readonly string[]) => spawnCommand(argv, { env, cwd: folder }).ended;
  return { authority, root, dataDir: context.dataDir, start: () => context.start(env), command };
}

describe.skipIf(!canRun)('Caddy as authority (needs caddy, and ports 80 and 443)', () => {
  it.each(['http-01', 'tls-alpn-01'] as const)(
    'issues by %s at the first start, and again on request while the receiver runs',
    async (challenge) => {
      const { root, dataDir, start, command } = await openContext(challenge);
      const { port, log } = await start();
      const shown = () => shownSerial(port, root);
      await expect.poll(shown, { ...issued, message: log() }).not.toBeNull();
      const first = await shown();
      const { code, out, err } = await command(['certificate', 'renew', '--force']);
      expect(code, out + err).toBe(0);
      const renewed = savedSerial(dataDir);
      expect(renewed).not.toBe(first);
      await expect.poll(shown, issued).toBe(renewed);
      expect(log()).not.toContain('"level":"error"');
    },
    60_000,
  );

  it('issues for twelve hours, and the receiver renews after half of them', async () => {
    const { authority, root, dataDir, start } = await openContext('http-01');
    const { child, port } = await start();
    await expect.poll(() => shownSerial(port, root), issued).not.toBeNull();
    await expect.poll(() => savedSerial(dataDir)).not.toBeNull();
    await ended(child);
    const { directoryUrl } = authority;
    const httpListen = { host: '127.0.0.1', port: 80 };
    const settings = { host: 'localhost', httpListen, dataDir };
    const program = openProgram({ directoryUrl, caPem: root }, settings);
    program.clock.us += 5.5 * hourUs;
    expect(await program.check()).toBeNull();
    program.clock.us += 0.6 * hourUs;
    const before = savedSerial(dataDir);
    const renewed = await program.check();
    expect(renewed).not.toBeNull();
    expect(savedSerial(dataDir)).not.toBe(before);
  }, 60_000);
});
