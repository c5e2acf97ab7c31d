/** An order that a program has left behind is taken up while it leads somewhere, and dropped when not. */
import { describe, expect, it } from 'vitest';
import { hasPebble, startPebble } from '../../helpers/pebble.ts';
import { filesOf, leaveOrder } from './interrupted-world.ts';
import { dayUs, openProgram, watchRequests } from './pebble-world.ts';

describe.skipIf(!hasPebble)('an order that was left behind (needs pebble)', () => {
  it('and that the authority has forgotten, its account too, is placed anew', async () => {
    const pebble = await startPebble();
    const { dataDir, clock, order } = await leaveOrder(pebble);
    await pebble.stop();
    await pebble.start();
    const program = openProgram(pebble, { dataDir, clock });
    const account = filesOf(program).find((name) => name.startsWith('account-')) ?? '';
    const { key } = program.saved(account);
    expect((await program.look()).outcome).toBe('renewed');
    expect(program.saved('certificate.json').key).not.toBe(order.key);
    expect(program.saved(account).key).toBe(key);
    expect(program.state()).toMatchObject({ failures: 0, lastFailure: null });
  });

  it.each([
    ['for another name', 'other.example.org', 0],
    ['a day ago', 'earshot.example.org', dayUs],
    ['in the future', 'earshot.example.org', -1],
  ])('%s is dropped', async (_, host, laterUs) => {
    const pebble = await startPebble();
    const { dataDir, clock, order } = await leaveOrder(pebble);
    const requests = watchRequests(pebble);
    clock.advance(laterUs);
    const program = openProgram(pebble, { dataDir, clock, settings: { host } });
    const renewal = await program.look();
    expect(renewal.outcome === 'renewed' && renewal.certificate.covers(host)).toBe(true);
    expect(program.saved('certificate.json').key).not.toBe(order.key);
    expect(requests.orders()).toBe(1);
    expect(filesOf(program)).not.toContain('order.json');
  });

  it('is taken up when it is ours, and of today', async () => {
    const pebble = await startPebble();
    const { dataDir, clock, order } = await leaveOrder(pebble);
    const requests = watchRequests(pebble);
    clock.advance(dayUs - 1);
    const program = openProgram(pebble, { dataDir, clock });
    expect((await program.look()).outcome).toBe('renewed');
    expect(program.saved('certificate.json').key).toBe(order.key);
    expect(requests.orders()).toBe(0);
  });
});
