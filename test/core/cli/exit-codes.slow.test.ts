/** Exit codes of the commands that check something: 0 done, 1 failed, 2 usage or configuration, 3 differences. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openReconcileContext } from '../../features/coverage/reconcile-context.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const doctor = 'doctor';
const config = 'admin config';
const coverage = 'coverage --since 3d';
const reconcile = 'reconcile --since 3d --check';
const filter = 'filter check --subscription alps --entity Products';

const settings = {
  EARSHOT_LISTEN: '127.0.0.1:0',
  EARSHOT_TLS: 'off',
  EARSHOT_ENDPOINT_USERNAME: 'catalogue',
  EARSHOT_ENDPOINT_PASSWORD: 'a-long-password',
};

/** A data directory with a subscription and half of the events of the catalogue. */
async function openContext() {
  const context = await openReconcileContext();
  await context.register('alps');
  const products = await context.catalogueProducts();
  await context.push('alps', products.slice(0, products.length / 2));
  const workingDir = temporaryDirectory();
  const codeOf = async (argv: string, env: Record<string, string> = {}) =>
    (await context.run(argv, { workingDir, env: { ...settings, ...env } })).code;
  return { ...context, workingDir, codeOf };
}

describe('the exit code', () => {
  it('is 2 for wrong usage and invalid settings', async () => {
    const { codeOf, workingDir } = await openContext();
    const invalid = { EARSHOT_DATA_DIR: workingDir, EARSHOT_RECONCILE: 'perhaps' };
    for (const argv of [doctor, config, coverage, reconcile, filter]) {
      expect([argv, await codeOf(`${argv} --unknown`)]).toEqual([argv, 2]);
      expect([argv, await codeOf(argv, invalid)]).toEqual([argv, 2]);
    }
    expect(await codeOf('filter check foo')).toBe(2);
    writeFileSync(join(workingDir, 'earshot.config.ts'), 'export default { subscriptions: 1 };\n');
    expect(await codeOf(config)).toBe(2);
    expect(await codeOf(doctor)).toBe(2);
  });

  it('is 1 for a failure, also of a doctor that finds wrong settings, too', async () => {
    const { dataDir, codeOf } = await openContext();
    const unreachable = { EARSHOT_PUBLIC_URL: 'https://127.0.0.1:1' };
    expect(await codeOf(doctor, { ...unreachable, EARSHOT_RECONCILE: 'perhaps' })).toBe(1);
    for (const end of ['-wal', '-shm']) rmSync(join(dataDir, `earshot.db${end}`), { force: true });
    writeFileSync(join(dataDir, 'earshot.db'), 'damaged '.repeat(1_000));
    for (const argv of [doctor, coverage, reconcile]) {
      expect([argv, await codeOf(argv)]).toEqual([argv, 1]);
    }
  });

  it('is 3 for differences, and 0 without', async () => {
    const { codeOf } = await openContext();
    expect([await codeOf(reconcile), await codeOf(coverage)]).toEqual([3, 3]);
    expect(await codeOf('reconcile --since 3d')).toBe(0);
    for (const argv of [config, coverage, reconcile, filter]) {
      expect([argv, await codeOf(argv)]).toEqual([argv, 0]);
    }
  });
});
