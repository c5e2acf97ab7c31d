/** The disk is full when a certificate is issued: it is served, and saved when space is free. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hasPebble } from '../helpers/pebble.ts';
import type { SpawnedReceiver } from '../helpers/spawned-receiver.ts';
import {
  type CertificateContext,
  openCertificateContext,
  postNotification,
  savedSerial,
  shownSerial,
  storedAckIds,
} from './certificate-context.ts';
import { ended } from './certificate-kill.ts';
import { canMount, mountSmallDisk, type SmallDisk } from './disk-small.ts';

const issued = { timeout: 15_000 };
/** The first delay after a failure with maximum jitter, plus one check. */
const retried = { timeout: 95_000, interval: 500 };

interface FullDisk {
  context: CertificateContext;
  disk: SmallDisk;
  receiver: SpawnedReceiver;
  /** Serial numbers of the certificate on disk and of the one in memory. */
  old: string | null;
  renewed: string | null;
  answered: string[];
  /** Sends the next notification; returns the status. */
  send(): Promise<number>;
}

/** A receiver whose disk becomes full while the authority issues its second certificate. */
async function fillWhileIssuing(): Promise<FullDisk> {
  const disk = mountSmallDisk(10);
  const context = await openCertificateContext({ folder: disk.folder });
  const { proxy, root, dataDir } = context;
  const first = await context.start();
  await expect.poll(() => shownSerial(first.port, root), issued).not.toBeNull();
  await expect.poll(() => proxy.granted('certZ')).toBe(1);
  await expect.poll(() => savedSerial(dataDir)).not.toBeNull();
  await ended(first.child);
  const old = savedSerial(dataDir);

  const [atFinalize, isFull] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  proxy.watch(({ path, moment }) => {
    if (!path.startsWith('/finalize-order') || moment !== 'before') return undefined;
    atFinalize.resolve();
    return isFull.promise;
  });
  // The authority has another name: the existing certificate does not match the settings.
  const receiver = await context.start({ EARSHOT_ACME_DIRECTORY: proxy.otherDirectoryUrl });
  const answered: string[] = [];
  let number = 0;
  const send = async () => {
    number += 1;
    const status = await postNotification(receiver.port, root, number);
    if (status === 200) answered.push(`ack-${number}`);
    return status;
  };
  await atFinalize.promise;
  for (let sent = 0; sent < 20; sent += 1) expect(await send()).toBe(200);
  disk.fill();
  // The receiver may truncate a write-ahead log, which frees some bytes: enough for a certificate.
  disk.useInodes();
  isFull.resolve();
  const shown = () => shownSerial(receiver.port, root);
  await expect.poll(shown, issued).not.toBe(old);
  return { context, disk, receiver, old, renewed: await shown(), answered, send };
}

describe.skipIf(!(hasPebble && canMount))(
  'a disk that is full when a certificate is issued (needs pebble, and root to mount one)',
  () => {
    it('prevents saving, not serving; the same certificate is saved once space is free', async () => {
      const { context, disk, receiver, old, renewed, answered, send } = await fillWhileIssuing();
      const { dataDir, proxy, root } = context;
      expect(renewed).not.toBeNull();
      await expect.poll(receiver.log, issued).toContain('(ENOSPC): the disk is full. Free some');
      expect(savedSerial(dataDir)).toBe(old);
      // Deleted rows have left some free space in the database files.
      await expect.poll(send, { timeout: 15_000, interval: 1 }).toBe(503);
      expect(await shownSerial(receiver.port, root)).toBe(renewed);

      disk.free();
      await expect.poll(send, { timeout: 15_000 }).toBe(200);
      await expect.poll(() => savedSerial(dataDir), retried).toBe(renewed);
      expect(await shownSerial(receiver.port, root)).toBe(renewed);
      expect(proxy.granted('order-plz')).toBe(2);
      expect(proxy.granted('finalize-order')).toBe(2);
      const stateFile = join(dataDir, 'acme', 'renewal.json');
      const state = () => JSON.parse(readFileSync(stateFile, 'utf8')).states[0].failures;
      await expect.poll(state).toBe(0);
      expect(await send()).toBe(200);
      expect(storedAckIds(dataDir)).toEqual(expect.arrayContaining(answered));
    }, 150_000);

    it('does not lose the certificate on SIGKILL: the next start saves it', async () => {
      const { context, disk, receiver, old, renewed, answered } = await fillWhileIssuing();
      const { dataDir, proxy, root } = context;
      await ended(receiver.child);
      expect(savedSerial(dataDir)).toBe(old);
      disk.free();
      const again = await context.start({ EARSHOT_ACME_DIRECTORY: proxy.otherDirectoryUrl });
      await expect.poll(() => shownSerial(again.port, root), issued).toBe(renewed);
      await expect.poll(() => savedSerial(dataDir)).toBe(renewed);
      expect(proxy.granted('finalize-order')).toBe(2);
      expect(storedAckIds(dataDir)).toEqual(expect.arrayContaining(answered));
    }, 60_000);
  },
);
