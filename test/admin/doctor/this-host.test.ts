/** The doctor's comparison of the name's addresses with this machine's. */
import { describe, expect, it } from 'vitest';
import { checkThisHost } from '../../../src/admin/endpoint-checks.ts';

const loopback = ['127.0.0.1', '::1'];
const look = (addresses: string[], localAddresses: string[]) =>
  checkThisHost({ addresses, localAddresses: [...loopback, ...localAddresses] })[0];

describe('a name', () => {
  it('that leads to an address of this machine passes', () => {
    expect(look(['192.0.2.7'], ['192.0.2.7'])).toMatchObject({ state: 'pass' });
    expect(look(['2001:db8::0:1'], ['2001:db8::1'])).toMatchObject({ state: 'pass' });
    expect(look(['9.9.9.9'], ['::ffff:9.9.9.9'])).toMatchObject({ state: 'pass' });
  });

  it('that leads to another public address than this machine has is warned of, with both', () => {
    const finding = look(['9.9.9.9'], ['8.8.8.8']);
    expect(finding).toMatchObject({ state: 'warn' });
    expect(finding?.message).toMatch(/leads to 9\.9\.9\.9; this machine has 8\.8\.8\.8/);
    expect(finding?.advice).toMatch(/A and AAAA/);
  });

  it('with a forgotten AAAA record is warned of, though its A record is right', () => {
    const finding = look(['8.8.8.8', '2a00::9'], ['8.8.8.8', '2a00::8']);
    expect(finding).toMatchObject({ state: 'warn' });
    expect(finding?.message).toMatch(/leads to 2a00::9;/);
  });

  it('of a machine with private addresses passes, as NAT may lead there', () => {
    const finding = look(['9.9.9.9'], ['10.0.0.5', 'fe80::1']);
    expect(finding).toMatchObject({ state: 'pass' });
    expect(finding?.message).toMatch(/may be behind NAT/);
  });
});
