/** Orders that end with an unusable certificate, a full disk or an unwritable file. */

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { errorText } from '../../../src/domain/app-error.ts';
import { createCertificateAuthority } from '../../../src/sandbox/certificate-authority.ts';
import {
  dayUs,
  failure,
  failureOf,
  openOrders,
  orderAtStub,
  startUs,
} from '../../helpers/order-at-stub.ts';
import { type Step, startStubAuthority } from '../../helpers/stub-authority.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const other = await createCertificateAuthority({ now: Date.now });

const withAnotherKey = await other.issue({ hosts: ['earshot.example.org'] });

it.each([
  ['for another key', withAnotherKey.certificatePem, /does not belong to the certificate/],
  ['that is not PEM', 'Thank you for your order.', /does not contain a PEM certificate/],
  ['without a certificate', '', /does not contain a PEM certificate|invalid by RFC 8555/],
  [
    'that is truncated',
    withAnotherKey.certificatePem.slice(0, 200),
    /does not contain a PEM certificate/,
  ],
  ['that is a key', withAnotherKey.keyPem, /does not contain a PEM certificate/],
])('a chain %s is refused, and the old certificate stays', async (_title, chain, message) => {
  const { authority, check, served, clock, dataDir, context } = await orderAtStub();
  await check();
  const file = join(dataDir, 'acme', 'certificate.json');
  const before = readFileSync(file, 'utf8');
  authority.break('certificate', (answer) => ({ ...answer, body: chain }));
  clock.us += 80 * dayUs;
  expect(errorText(await failureOf(check()))).toMatch(message);
  expect(served).toHaveLength(1);
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect(await context.states.read()).toMatchObject({ failures: 1 });
});

it('a certificate for another name is refused and not served', async () => {
  const { check, served, context } = await orderAtStub({ issueFor: 'other.example.org' });
  expect(errorText(await failureOf(check()))).toMatch(
    /issued a certificate that cannot be used\..*the certificate is not valid for earshot\.example\.org\)$/,
  );
  expect(served).toEqual([]);
  expect(await context.folder.readCertificate()).toBeNull();
});

it('certificates that expire immediately do not cause a flood of orders', async () => {
  const { authority, check, clock, context } = await orderAtStub({ lifetimeMs: 1_000 });
  await check();
  const state = await context.states.read();
  // The limit of short-lived certificates is reached and not exceeded.
  const issuedAtUs = Array.from({ length: 96 }, (_, i) => clock.us - 95 + i);
  await context.states.write({ ...state, issuedAtUs });
  clock.us += 10_000_000;
  expect(await check()).toMatchObject({
    outcome: 'waiting',
    untilUs: (issuedAtUs[0] ?? 0) + dayUs,
  });
  expect(authority.count('newOrder')).toBe(1);
});

it('an expired certificate does not replace a valid one', async () => {
  const skew = { ms: 0 };
  const clock = { us: startUs };
  const nowMs = () => clock.us / 1000 - skew.ms;
  const authority = await startStubAuthority({ nowMs });
  const { check, served, context } = openOrders(authority, clock);
  await check();
  skew.ms = 400 * 86_400_000;
  clock.us += 61 * dayUs;
  expect(errorText(await failureOf(check()))).toMatch(
    /cannot be used\..*it has already expired\)$/,
  );
  expect(served).toHaveLength(1);
  expect((await context.folder.readCertificate())?.cert).toBe(served[0]?.cert);
});

it('unusable certificates count towards the limit of five orders a day', async () => {
  const { authority, check, clock } = await orderAtStub({ issueFor: 'other.example.org' });
  for (let tenMinutes = 0; tenMinutes < 6 * 24; tenMinutes += 1) {
    await check().catch(() => undefined);
    clock.us += 600_000_000;
  }
  expect(authority.count('finalize')).toBe(5);
});

it('an order whose certificate is downloaded in a later attempt counts once', async () => {
  const { authority, check, clock, context } = await orderAtStub();
  authority.break('certificate', failure(500), 2);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await failureOf(check());
    clock.us += 3_600_000_000;
  }
  expect((await check()).outcome).toBe('renewed');
  expect((await context.states.read()).issuedAtUs).toHaveLength(1);
  expect(authority.count('newOrder')).toBe(1);
});

it('the certificate of an order that reaches the daily limit is still downloaded', async () => {
  const { authority, check, clock, context } = await orderAtStub();
  const state = await context.states.read();
  const issuedAtUs = [1, 2, 3, 4].map((minutes) => clock.us - minutes * 60_000_000);
  await context.states.write({ ...state, issuedAtUs });
  authority.break('certificate', failure(500), 1);
  await failureOf(check());
  expect((await context.states.read()).issuedAtUs).toHaveLength(5);
  clock.us += 3_600_000_000;
  expect((await check()).outcome).toBe('renewed');
  expect(authority.count('newOrder')).toBe(1);
  // Another order would exceed the limit.
  expect(errorText(await failureOf(check('anyway')))).toMatch(
    /earshot has ordered its maximum number of certificates in 24 hours/,
  );
});

const canMount = process.env.CI !== undefined || process.getuid?.() === 0;

/** Mounts a file system of 1 MB. CI runs as root, so the tests run there. */
function smallDisk() {
  const disk = temporaryDirectory();
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]);
  onTestFinished(() => void spawnSync('umount', ['--lazy', disk]));
  const filler = join(disk, 'filler');
  return {
    dataDir: join(disk, 'data'),
    fill: () => {
      try {
        writeFileSync(filler, Buffer.alloc(2 ** 21));
      } catch {
        // Full, as intended.
      }
    },
    free: () => rmSync(filler, { force: true }),
  };
}

describe.skipIf(!canMount)('a full disk (mounting a small one requires root)', () => {
  /** Answer during which the disk fills up, file that cannot be written, number of orders at the end. */
  const cases: [Step, RegExp, number][] = [
    ['directory', /account-\w+\.json/, 1],
    ['newOrder', /order\.json/, 3],
    ['authorization', /challenges\/token-1/, 1],
    ['certificate', /certificate\.json/, 1],
  ];

  it.each(cases)(
    'during %s is reported and counted, and the order succeeds after space was freed',
    async (...row) => {
      const [step, file, orders] = row;
      const disk = smallDisk();
      const { authority, clock, check, context, served } = await orderAtStub(
        { unproved: step === 'authorization' },
        { dataDir: disk.dataDir },
      );
      authority.break(step, (answer) => {
        disk.fill();
        return answer;
      });
      for (const failures of [1, 2]) {
        const error = await failureOf(check());
        expect(error.code).toBe('unavailable');
        expect(errorText(error)).toMatch(file);
        expect(errorText(error)).toContain('(ENOSPC): the disk is full. Free some space.');
        const state = await context.states.read();
        expect(state).toMatchObject({ failures, lastFailure: { message: error.message } });
        const requestCount = authority.requests.length;
        expect(await check()).toMatchObject({ outcome: 'waiting', untilUs: state.nextTryAtUs });
        expect(authority.requests).toHaveLength(requestCount);
        clock.us = state.nextTryAtUs ?? 0;
      }
      authority.repair(step);
      disk.free();
      expect(await check()).toMatchObject({ outcome: 'renewed' });
      expect(authority.count('newOrder')).toBe(orders);
      expect(authority.count('finalize')).toBe(1);
      // The same certificate each time, served before it was saved.
      expect(new Set(served.map(({ cert }) => cert)).size).toBe(1);
      expect(served).toHaveLength(step === 'certificate' ? 3 : 1);
      expect(await context.folder.readCertificate()).toMatchObject({ cert: served[0]?.cert });
      expect(await context.states.read()).toMatchObject({
        failures: 0,
        issuedAtUs: [expect.any(Number)],
      });
    },
  );

  it('before the first order prevents the creation of an account', async () => {
    const disk = smallDisk();
    mkdirSync(disk.dataDir);
    const { authority, check } = await orderAtStub({}, { dataDir: disk.dataDir });
    // The lock file exists, as after an earlier attempt.
    writeFileSync(join(disk.dataDir, 'certificate.lock'), '');
    disk.fill();
    expect(errorText(await failureOf(check()))).toContain('the disk is full');
    expect(authority.requests).toEqual([]);
  });

  it('leaves the old certificate intact, and a restart resumes the order', async () => {
    const disk = smallDisk();
    const { authority, clock, check, context } = await orderAtStub({}, { dataDir: disk.dataDir });
    await check();
    const old = await context.folder.readCertificate();
    clock.us += 80 * 86_400_000_000;
    authority.break('certificate', (answer) => {
      disk.fill();
      return answer;
    });
    await failureOf(check());
    expect(await context.folder.readCertificate()).toEqual({
      ...old,
      covers: expect.any(Function),
    });

    disk.free();
    authority.repair('certificate');
    const again = openOrders(authority, clock, { dataDir: disk.dataDir });
    expect(await again.check()).toMatchObject({ outcome: 'renewed' });
    expect(authority.count('newOrder')).toBe(2);
    expect(authority.count('finalize')).toBe(2);
  });
});

describe('a folder in place of a file', () => {
  it.each([
    ['certificate.json', /certificate\.json/],
    ['order.json', /order\.json/],
  ])('%s: the message explains the fix', async (name, file) => {
    const { dataDir, check, authority, clock, context } = await orderAtStub();
    const path = join(dataDir, 'acme', name);
    authority.break('newOrder', (answer) => {
      mkdirSync(path);
      return answer;
    });
    const error = await failureOf(check());
    expect(errorText(error)).toMatch(file);
    expect(errorText(error)).toMatch(/Give the user that runs earshot/);
    rmSync(path, { recursive: true });
    authority.repair('newOrder');
    clock.us = (await context.states.read()).nextTryAtUs ?? 0;
    expect(await check()).toMatchObject({ outcome: 'renewed' });
  });
});

it('every file with a key is readable only for its owner', async () => {
  const { dataDir, check, authority } = await orderAtStub();
  const modes: string[] = [];
  const modeOf = (name: string) => (statSync(join(dataDir, 'acme', name)).mode & 0o777).toString(8);
  authority.break('certificate', (answer) => {
    modes.push(modeOf('order.json'));
    return answer;
  });
  await check();
  expect([...modes, modeOf('certificate.json'), modeOf('renewal.json'), modeOf('.')]).toEqual([
    '600',
    '600',
    '600',
    '700',
  ]);
});
