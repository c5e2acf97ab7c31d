/** Somebody asks whether a certificate can be had: nothing is used up, and nothing changes. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rehearse } from '../../../src/tls/acme/order.ts';
import { hasPebble, leaveAccount, startPebble } from '../../helpers/pebble.ts';
import { openProgram, watchRequests } from './pebble-world.ts';
import { elsewhere, startBoth } from './staging-world.ts';

describe.skipIf(!hasPebble)('a rehearsal (needs pebble)', () => {
  it('goes through at the staging directory, leaves nothing, and asks the authority nothing', async () => {
    const { program, requests, filesOf } = await startBoth();
    expect(await rehearse(program.context)).toBe('issued');
    expect(requests.production.asked).toEqual([]);
    expect(requests.staging.finalized()).toBe(1);
    expect(filesOf()).toEqual([expect.stringMatching(/^account-/)]);
    expect(program.issued).toEqual([]);
    expect((await program.look()).outcome).toBe('renewed');
  });

  it('proves the name where there is no staging directory, and has no certificate made', async () => {
    const pebble = await startPebble();
    const requests = watchRequests(pebble);
    const { context, look, dataDir } = openProgram(pebble);
    expect(await rehearse(context)).toBe('proved');
    expect(requests.orders()).toBe(1);
    const asked = requests.asked.map(({ what }) => what);
    expect(asked).toContain('chalZ');
    expect(asked).not.toContain('finalize-order');
    expect(asked).not.toContain('certZ');
    expect(readdirSync(join(dataDir, 'acme'))).toEqual([expect.stringMatching(/^account-/)]);
    expect((await look()).outcome).toBe('renewed');
  });

  it('that fails says why, counts as no failure, and leaves the certificate alone', async () => {
    const pebble = await startPebble();
    const { context, look, saved, state, dataDir } = openProgram(pebble);
    await look();
    leaveAccount(dataDir);
    const before = [saved('certificate.json'), state()];
    await pebble.setAddress(elsewhere);
    await expect(rehearse(context)).rejects.toMatchObject({ type: 'connection' });
    expect([saved('certificate.json'), state()]).toEqual(before);
    expect((await look()).outcome).toBe('current');
  });
});
