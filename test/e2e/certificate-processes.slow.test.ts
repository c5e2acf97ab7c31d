/** Several programs on one data directory: one certificate is ordered, and all of them succeed. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hasPebble } from '../helpers/pebble.ts';
import { isThorough } from '../helpers/thorough.ts';
import { openCertificateContext, savedSerial, shownSerial } from './certificate-context.ts';
import { ended } from './certificate-kill.ts';

/** A running receiver checks the file every ten seconds. */
const pickUp = { timeout: 15_000 };

/** Number of processes that have a file open: the one with the lock, and those that wait for it. */
function openedBy(path: string): number {
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && hasOpen(pid, path)).length;
}

function hasOpen(pid: string, path: string): boolean {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).some((fd) => readlinkSync(join(folder, fd)) === path);
  } catch {
    // The process has ended, or has closed the file, in between.
    return false;
  }
}

describe.skipIf(!hasPebble)('programs on one data directory (needs pebble)', () => {
  it.each(isThorough ? (['http-01', 'tls-alpn-01'] as const) : (['tls-alpn-01'] as const))(
    'order one certificate by %s together, and all serve it',
    async (challenge) => {
      const context = await openCertificateContext({ challenge });
      const { proxy, root, dataDir } = context;
      const passes = Promise.withResolvers<void>();
      proxy.watch(({ path }) => (path.startsWith('/finalize-order') ? passes.promise : undefined));
      const first = await context.start();
      const second = await context.start({ EARSHOT_LISTEN: '127.0.0.1:0' });
      const renewals = [1, 2, 3].map(() => context.command(['certificate', 'renew']));
      const lock = join(dataDir, 'certificate.lock');
      await expect.poll(() => openedBy(lock), { timeout: 20_000 }).toBe(4);
      passes.resolve();
      const results = await Promise.all(renewals.map((renewal) => renewal.ended));
      for (const { code, out, err } of results) expect(code, out + err).toBe(0);
      const saved = savedSerial(dataDir);
      expect(saved).not.toBeNull();
      const shown = () => Promise.all([first, second].map(({ port }) => shownSerial(port, root)));
      await expect.poll(shown, pickUp).toEqual([saved, saved]);
      expect(proxy.granted('sign-me-up')).toBe(1);
      expect(proxy.granted('order-plz')).toBe(1);
      expect(proxy.granted('finalize-order')).toBe(1);
    },
    60_000,
  );

  it('continue for each other: after a kill, another one fetches the ordered certificate', async () => {
    const context = await openCertificateContext();
    const { proxy, root, dataDir } = context;
    const [reached, passes] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    proxy.watch(({ path, moment }) => {
      if (!path.startsWith('/finalize-order') || moment === 'before') return undefined;
      reached.resolve();
      return passes.promise;
    });
    const first = await context.start();
    await reached.promise;
    const renewal = context.command(['certificate', 'renew']);
    await expect.poll(() => openedBy(join(dataDir, 'certificate.lock')), pickUp).toBe(2);
    await ended(first.child);
    passes.resolve();
    const { code, out, err } = await renewal.ended;
    expect(code, out + err).toBe(0);
    expect(proxy.granted('sign-me-up')).toBe(1);
    expect(proxy.granted('order-plz')).toBe(1);
    expect(proxy.granted('finalize-order')).toBe(1);
    const again = await context.start();
    await expect.poll(() => shownSerial(again.port, root), pickUp).toBe(savedSerial(dataDir));
    expect(savedSerial(dataDir)).not.toBeNull();
  }, 60_000);

  it('answer challenges for each other: one without the port can order, too', async () => {
    const context = await openCertificateContext();
    const { proxy, root, dataDir } = context;
    const first = await context.start();
    await expect.poll(() => shownSerial(first.port, root), pickUp).not.toBeNull();
    // The served certificate is saved afterwards.
    await expect.poll(() => savedSerial(dataDir)).not.toBeNull();
    const before = savedSerial(dataDir);
    // For the second one, the authority has another name: the existing certificate does not match its settings.
    const second = await context.start({ EARSHOT_ACME_DIRECTORY: proxy.otherDirectoryUrl });
    await expect.poll(() => savedSerial(dataDir), pickUp).not.toBe(before);
    const { states } = JSON.parse(readFileSync(join(dataDir, 'acme', 'renewal.json'), 'utf8'));
    const well = { failures: 0, lastFailure: null };
    expect(states).toEqual([expect.objectContaining(well), expect.objectContaining(well)]);
    expect(second.log()).not.toContain('"level":"error"');
  }, 60_000);
});
