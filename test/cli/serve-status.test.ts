/** The status of a receiver that serves: whether it takes notifications, and what it is told of the rest. */
import { describe, expect, it } from 'vitest';
import { serveStatus } from '../../src/cli/start/status.ts';
import type { UnreadyReason } from '../../src/console/app.ts';
import { AppError } from '../../src/domain/app-error.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';
import { nowUs } from './fake-io.ts';

async function openServed(reasons: readonly UnreadyReason[]) {
  const { store, dataDir } = await openSqliteStore();
  const broken = {
    ...store,
    checkWritable: () => Promise.reject(new AppError('unavailable', 'The disk is full.')),
  };
  const config = {
    ...{ dataDir, index: false, tls: { kind: 'off' as const }, trustedProxies: [], console: null },
    ...{ listen: { host: '127.0.0.1', port: 0 }, publicUrl: undefined, logLevel: 'warn' as const },
    ...{ credentials: { source: 'variables' as const, pairs: [] }, diskReserveBytes: undefined },
  };
  const log = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error: () => undefined,
  };
  let now = nowUs;
  const served = serveStatus(
    config,
    { store: broken, readiness: async () => reasons, log },
    { nowUs: () => now },
  );
  return {
    ...served,
    pass: (us: number) => {
      now += us;
    },
  };
}

describe('a receiver that serves', () => {
  it('takes notifications, since it began, with nothing beside it unless told', async () => {
    const { status, tellBeside, pass } = await openServed([]);
    pass(60_000_000);
    expect(await status()).toMatchObject({
      ...{ version: 'unknown', sinks: [], behindProxy: true, failures: [] },
      receiver: {
        startedAtUs: nowUs,
        pid: null,
        refusing: null,
        queue: { bytes: 0, bytesMax: 2 ** 26 },
      },
    });
    tellBeside({
      version: '1.2.3',
      handingOver: () => ({ names: ['act'], fault: 'It is broken.' }),
      summaryMode: async () => 'digest',
      comparisonOff: null,
      backupEveryHours: 24,
    });
    pass(5_000_000);
    expect(await status()).toMatchObject({
      version: '1.2.3',
      sinks: [{ name: 'act', isSetUp: true, fault: 'It is broken.' }],
      summaries: { mode: 'digest' },
      backups: { everyHours: 24 },
    });
  });

  it.each<[UnreadyReason, string]>([
    ['store', 'The disk is full.'],
    ['writer', 'The thread that writes does not answer.'],
    ['certificate', 'There is no certificate that is valid now.'],
  ])('that is not ready for its %s says so', async (reason, words) => {
    const { status } = await openServed([reason]);
    const { receiver, parts } = await status();
    expect(receiver).toMatchObject({ refusing: words });
    expect(parts[0]).toMatchObject({
      level: 'critical',
      text: `Notifications cannot be taken: ${words}`,
    });
  });
});
