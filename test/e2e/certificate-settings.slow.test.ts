/** Programs with different settings on one data directory: neither harms the other, or the authority. */
import { describe, expect, it } from 'vitest';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { createChallengeListener } from '../../src/tls/acme/challenge.ts';
import { openAcmeContext } from '../../src/tls/acme/order.ts';
import { renew } from '../../src/tls/acme/renew.ts';
import { hasPebble } from '../helpers/pebble.ts';
import {
  type CertificateContext,
  openCertificateContext,
  savedSerial,
  shownSerial,
} from './certificate-context.ts';

const issued = { timeout: 20_000 };

/** Returns a renewal check, as of a receiver with this authority, that resolves with the outcome. */
function openCheck({ pebble, proxy, dataDir }: CertificateContext, directoryUrl: string) {
  const listener = createChallengeListener({ host: '127.0.0.1', port: pebble.ports.http }, null);
  const context = openAcmeContext({
    settings: {
      directoryUrl,
      host: 'localhost',
      challenge: 'http-01',
      email: undefined,
      extraCaPem: proxy.caPem,
      eab: undefined,
    },
    dataDir,
    openListener: (challenges) => listener.open(challenges),
    log: { error: () => undefined },
    nowUs: () => Date.now() * 1000,
    random: () => 0,
    signal: new AbortController().signal,
  });
  const acquireLock = createAcquireLock(dataDir);
  return async () => {
    const options = { when: 'due', acquireLock, lockWaitMs: 0, onIssued: () => undefined } as const;
    const { outcome } = await renew(context, options);
    await listener.close();
    return outcome;
  };
}

describe.skipIf(!hasPebble)('different authorities (needs pebble)', () => {
  it('each stay within the daily limit when they alternate on one data directory', async () => {
    const context = await openCertificateContext();
    const { directoryUrl, otherDirectoryUrl } = context.proxy;
    const checks = [openCheck(context, directoryUrl), openCheck(context, otherDirectoryUrl)];
    const outcomes: string[] = [];
    for (let round = 0; round < 8; round += 1) {
      for (const check of checks) outcomes.push(await check());
    }
    expect(outcomes.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 'renewed'));
    expect(outcomes.slice(10)).not.toContain('renewed');
    expect(context.proxy.granted('finalize-order')).toBe(10);
  }, 90_000);

  it('of a command and a receiver: the receiver continues to serve certificates of its own authority', async () => {
    const context = await openCertificateContext();
    const { proxy, root, dataDir } = context;
    const { port, log } = await context.start();
    await expect.poll(() => shownSerial(port, root), issued).not.toBeNull();
    await expect.poll(() => savedSerial(dataDir)).not.toBeNull();
    const other = { EARSHOT_ACME_DIRECTORY: proxy.otherDirectoryUrl };
    const { code, out, err } = await context.command(['certificate', 'renew'], other).ended;
    expect(code, out + err).toBe(0);
    const foreign = savedSerial(dataDir);
    const shown = new Set<string | null>();
    const countShown = async () => {
      shown.add(await shownSerial(port, root));
      return shown.size;
    };
    // Its first certificate, and the one that it orders because the file contains a foreign one.
    await expect.poll(countShown, { ...issued, interval: 20 }).toBe(2);
    expect([...shown]).not.toContain(foreign);
    await expect.poll(() => savedSerial(dataDir)).toBe([...shown][1]);
    expect(proxy.granted('finalize-order')).toBe(3);
    expect(log()).not.toContain('"level":"error"');
  }, 60_000);
});
