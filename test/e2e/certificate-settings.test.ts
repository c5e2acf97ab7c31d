/** Programs with different settings on one data directory: neither harms the other, or the authority. */
import { describe, expect, it } from 'vitest';
import { createTakeLock } from '../../src/store/engine/locks.ts';
import { openAcmeWorld } from '../../src/tls/acme/acme-world.ts';
import { createChallengeDoor } from '../../src/tls/acme/challenge-door.ts';
import { renew } from '../../src/tls/acme/renew.ts';
import { hasPebble } from '../helpers/pebble.ts';
import {
  type CertificateWorld,
  openCertificateWorld,
  savedSerial,
  shownSerial,
} from './certificate-world.ts';

const issued = { timeout: 20_000 };

/** Looks as a receiver with this authority does. */
function openLook({ pebble, proxy, dataDir }: CertificateWorld, directoryUrl: string) {
  const door = createChallengeDoor({ host: '127.0.0.1', port: pebble.ports.http });
  const world = openAcmeWorld({
    settings: {
      directoryUrl,
      host: 'localhost',
      challenge: 'http-01',
      email: undefined,
      extraCaPem: proxy.caPem,
      eab: undefined,
    },
    dataDir,
    openDoor: (challenges) => door.open(challenges),
    log: { error: () => undefined },
    nowUs: () => Date.now() * 1000,
    random: () => 0,
    signal: new AbortController().signal,
  });
  const takeLock = createTakeLock(dataDir);
  return async () => {
    const options = { when: 'due', takeLock, lockWaitMs: 0, onIssued: () => undefined } as const;
    const { outcome } = await renew(world, options);
    await door.close();
    return outcome;
  };
}

describe.skipIf(!hasPebble)('different authorities (needs pebble)', () => {
  it('that take turns on one data directory stay within the limit of a day, each', async () => {
    const world = await openCertificateWorld();
    const { directoryUrl, otherDirectoryUrl } = world.proxy;
    const looks = [openLook(world, directoryUrl), openLook(world, otherDirectoryUrl)];
    const outcomes: string[] = [];
    for (let round = 0; round < 8; round += 1) {
      for (const look of looks) outcomes.push(await look());
    }
    expect(outcomes.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 'renewed'));
    expect(outcomes.slice(10)).not.toContain('renewed');
    expect(world.proxy.granted('finalize-order')).toBe(10);
  }, 90_000);

  it('of a command and a receiver beside it: the receiver goes on showing one of its own', async () => {
    const world = await openCertificateWorld();
    const { proxy, root, dataDir } = world;
    const { port, log } = await world.start();
    await expect.poll(() => shownSerial(port, root), issued).not.toBeNull();
    await expect.poll(() => savedSerial(dataDir)).not.toBeNull();
    const other = { EARSHOT_ACME_DIRECTORY: proxy.otherDirectoryUrl };
    const { code, out, err } = await world.command(['certificate', 'renew'], other).ended;
    expect(code, out + err).toBe(0);
    const foreign = savedSerial(dataDir);
    const shown = new Set<string | null>();
    const look = async () => {
      shown.add(await shownSerial(port, root));
      return shown.size;
    };
    // The first one of its own, and the one that it got as the file held a foreign one.
    await expect.poll(look, { ...issued, interval: 20 }).toBe(2);
    expect([...shown]).not.toContain(foreign);
    await expect.poll(() => savedSerial(dataDir)).toBe([...shown][1]);
    expect(proxy.granted('finalize-order')).toBe(3);
    expect(log()).not.toContain('"level":"error"');
  }, 60_000);
});
