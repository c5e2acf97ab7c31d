/** The doctor's check whether the name leads to this very machine. */
import ipaddr from 'ipaddr.js';
import type { Finding } from '../../domain/finding.ts';

/**
 * Compares what the name resolves to with the addresses of this machine's interfaces. Behind NAT, where
 * those are private, the comparison says nothing, and the checks that knock tell more.
 */
export function checkThisHost(options: {
  addresses: readonly string[];
  localAddresses: readonly string[];
}): Finding[] {
  const check = 'this host';
  const { addresses, localAddresses } = options;
  const local = localAddresses.map((address) => ipaddr.process(address));
  const isLocal = (address: string) =>
    local.some((own) => own.toString() === ipaddr.process(address).toString());
  const elsewhere = addresses.filter((address) => !isLocal(address));
  if (elsewhere.length === 0) {
    return [{ check, state: 'pass', message: 'The name leads to an address of this machine.' }];
  }
  // Of each kind for itself: a forgotten AAAA record is where authorities look first.
  const compared = elsewhere.filter((address) =>
    local.some((own) => own.kind() === ipaddr.process(address).kind() && own.range() === 'unicast'),
  );
  if (compared.length === 0) {
    const message = `${elsewhere.join(', ')} is no address of this machine, which has only private ones: it may be behind NAT.`;
    return [{ check, state: 'pass', message }];
  }
  const own = local.filter((address) => address.range() === 'unicast').join(', ');
  return [
    {
      check,
      state: 'warn',
      message: `The name leads to ${compared.join(', ')}; this machine has ${own}.`,
      advice:
        'If a load balancer or NAT leads from there to here, all is well. Else correct the A and AAAA records of the name.',
    },
  ];
}
