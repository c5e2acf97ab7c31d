/** Several programs on one data directory: one certificate is ordered, and all of them succeed. */
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hasPebble } from '../helpers/pebble.ts';
import { isThorough } from '../helpers/thorough.ts';
import { openCertificateContext, savedSerial, shownSerial } from './certificate-context.ts';

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
});
