import { hash } from 'node:crypto';
import { zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeEntry,
  type EntryContent,
  encodeEntry,
} from '../../../src/features/shared-log/entry.ts';
import { createRandom } from '../../../src/sandbox/clock.ts';
import {
  type BodyRow,
  packBodies,
  packBodiesMax,
  unpackBodies,
} from '../../../src/store/bodies/bodies.ts';
import dictionary1 from '../../../src/store/bodies/dictionary-1.json' with { type: 'json' };
import { delivery, notification } from '../../helpers/deliveries.ts';
import { generatedBodies } from '../../helpers/generated-bodies.ts';
import { expectRefused } from '../../helpers/refusals.ts';
import { times } from '../../helpers/thorough.ts';
import { openSqliteStore } from '../sqlite-store.ts';
import { inFile, keptRows } from './bodies-in-file.ts';

const unpackAll = (rows: readonly BodyRow[]) => rows.flatMap(unpackBodies);

/** Incompressible bytes. */
function noise(length: number, seed = 1): Buffer {
  return Buffer.from(createRandom(seed).hex(2 * length), 'hex');
}

describe('packing bodies', () => {
  it('restores any bytes of any number of bodies', () => {
    const text = fc.uint8Array({ maxLength: 300 }).map((value) => Buffer.from(value));
    const bytes = fc.uint8Array({ maxLength: 2_000 });
    const repeated = fc
      .tuple(text, fc.integer({ min: 1, max: 200 }))
      .map(([part, times]) => Buffer.concat(Array.from({ length: times }, () => part)));
    const bodies = fc.array(fc.oneof(bytes, text, repeated), {
      minLength: 1,
      maxLength: packBodiesMax,
    });
    fc.assert(
      fc.property(bodies, fc.constantFrom(1, 9, 15), (packed, level) => {
        const rows = packBodies(packed, level);
        expect(rows.reduce((sum, row) => sum + row.bodies, 0)).toBe(packed.length);
        expect(unpackAll(rows).map((body) => body.toString('hex'))).toEqual(
          packed.map((body) => Buffer.from(body).toString('hex')),
        );
      }),
      { numRuns: times(20, 60) },
    );
  });

  it('reduces notifications to a ninth of their size in packs, and to a sixth alone', () => {
    const bodies = generatedBodies(64);
    const raw = Buffer.concat(bodies).length;
    const bytesOf = (rows: readonly BodyRow[]) =>
      rows.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const packs = [0, 16, 32, 48].flatMap((at) => packBodies(bodies.slice(at, at + 16), 1));
    expect(packs.map((row) => row.bodies)).toEqual([16, 16, 16, 16]);
    expect(bytesOf(packs)).toBeLessThan(raw / 8.5);
    expect(bytesOf(bodies.flatMap((body) => packBodies([body], 1)))).toBeLessThan(raw / 6);
  });

  it("stores bodies uncompressed when compression does not help or they exceed the receiver's limit", () => {
    const rows = packBodies([noise(500), noise(700, 2)], 1);
    expect(rows).toMatchObject([
      { encoding: 'identity', bodies: 1 },
      { encoding: 'identity', bodies: 1 },
    ]);
    const large = Buffer.alloc(2 ** 20 + 300, ' ');
    expect(packBodies([large], 1)).toEqual([{ encoding: 'identity', bodies: 1, bytes: large }]);
    const limit = Buffer.alloc(2 ** 20, ' ');
    const [row] = packBodies([limit], 1);
    expect(row?.encoding).toBe('zstd-1');
    expect(unpackAll(packBodies([limit], 1))[0]?.equals(limit)).toBe(true);
  });
});

/** A pack written by the first version. It must stay readable. */
const firstPack =
  'KLUv/WUBQAI9AwCjwgiZ1otVIb686KCMFE2EFzXiACMHaqeDh9cgvtFJAAAACEAEAhz8wZEMjEzklEr8O6wQSXl2sVN8soD+Ofr5kSSz7m3F/nm5CcT92yJ3zwI9i+0Pkm1VGfTrcX89u9f/VtL//5cBvhtl6w==';

describe('the first version', () => {
  it('has the dictionary that it was released with', () => {
    expect(hash('sha256', Buffer.from(dictionary1.base64, 'base64'))).toBe(
      '9d2b5cc87c559ac1f89808acbfc8c87c1670b6d781b6355a1b37ea930c055b3e',
    );
  });

  it('can still be read', () => {
    const bytes = Buffer.from(firstPack, 'base64');
    const bodies = unpackBodies({ encoding: 'zstd-1', bodies: 3, bytes });
    expect(bodies.map((body) => JSON.parse(body.toString()))).toMatchObject([
      { SubscriptionEvent: 'created', ProductId: '00000000-0000-4000-8000-000000000000' },
      { SubscriptionEvent: 'modified', ProductId: '00000000-0000-4000-8000-000000000001' },
      { SubscriptionEvent: 'deleted', ProductId: '00000000-0000-4000-8000-000000000002' },
    ]);
  });
});

describe('an unreadable row', () => {
  const bodies = generatedBodies(3);
  const [row] = packBodies(bodies, 1);
  if (row === undefined) throw new Error('there is no pack');
  const reading = (change: Partial<BodyRow>) => () => unpackBodies({ ...row, ...change });
  const damaged = expect.objectContaining({
    code: 'unavailable',
    message: expect.stringMatching(/damaged.*restore a backup/),
  });

  it('never gives other bodies, whichever byte was changed', () => {
    let harmless = 0;
    for (let at = 0; at < row.bytes.length; at += 7) {
      const bytes = Buffer.from(row.bytes);
      bytes[at] = (bytes[at] ?? 0) ^ 0x10;
      try {
        expect(reading({ bytes })(), `byte ${at}`).toEqual(bodies);
        harmless += 1;
      } catch (error) {
        expect(error, `byte ${at}`).toEqual(damaged);
      }
    }
    // A few bits of a frame are unused.
    expect(harmless).toBeLessThan(5);
    expect(reading({ bytes: row.bytes.subarray(0, -1) })).toThrow(damaged);
    expect(reading({ bytes: Buffer.alloc(0) })).toThrow(damaged);
  });

  it('is not unpacked beyond the maximum size of a pack', () => {
    const bytes = zstdCompressSync(Buffer.alloc(512 * 2 ** 20));
    expect(bytes.length).toBeLessThan(100_000);
    expect(reading({ bytes, bodies: 1 })).toThrow(damaged);
  });

  it('is reported with its encoding when a newer version wrote it', () => {
    expect(reading({ encoding: 'zstd-9' })).toThrow(/"zstd-9".*newer/);
  });
});

it('an entry of the shared log in a newer format is refused, because it could mean something else', () => {
  const entry: EntryContent = { kind: 'changes', changes: [] };
  expect(decodeEntry(encodeEntry(entry))).toEqual(entry);
  const newer = encodeEntry({ ...entry, ...{ format: 2 } });
  expect(() => decodeEntry(newer)).toThrow(/newer version of earshot/);
});

it('stored bodies are not written when their commit fails, and their ids are not reused', async () => {
  const { store, dataDir } = await openSqliteStore();
  await store.accept(delivery(notification(1)));
  inFile(dataDir, (database) =>
    database.exec(
      `CREATE TRIGGER refuse BEFORE INSERT ON notification WHEN NEW.ack_id = 'ack-3'
       BEGIN SELECT raise(ABORT, 'refused by a test'); END`,
    ),
  );
  const deliveries = [2, 3, 4, 5].map((number) => delivery(notification(number)));
  const receipts = await Promise.all(deliveries.map((one) => store.accept(one)));
  expect(receipts.map(({ outcome }) => outcome)).toEqual([
    'stored',
    'rejected',
    'stored',
    'stored',
  ]);
  for await (const { position, ackId } of store.find({})) {
    const body = JSON.parse(Buffer.from(await store.body(position)).toString());
    expect(body).toMatchObject({ AckId: ackId });
  }
  const { body } = await store.quarantineEntry(1);
  expect(JSON.parse(Buffer.from(body).toString())).toMatchObject({ AckId: 'ack-3' });
  expect(keptRows(dataDir).reduce((sum, { bodies }) => sum + bodies, 0)).toBe(5);
});

it('a damaged pack is reported to readers of its bodies; other bodies stay readable and intake continues', async () => {
  const { store, dataDir } = await openSqliteStore();
  const bodies = generatedBodies(9);
  for (const three of [bodies.slice(0, 3), bodies.slice(3, 6)]) {
    await Promise.all(three.map((body) => store.accept(delivery(body))));
  }
  inFile(dataDir, (database) =>
    database
      .prepare(
        'UPDATE body SET packed = CAST(substr(packed, 1, 900) || zeroblob(20) AS BLOB) WHERE id = 1',
      )
      .run(),
  );
  await expectRefused(store.body(2), 'unavailable');
  await expect(store.body(2)).rejects.toThrow(/A body in the log is damaged/);
  expect(Buffer.from(await store.body(5))).toEqual(bodies[4]);
  await Promise.all(bodies.slice(6).map((body) => store.accept(delivery(body))));
  expect(Buffer.from(await store.body(9))).toEqual(bodies[8]);
});
