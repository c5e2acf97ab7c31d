/** The doctor's steps from the public URL to an answer of the receiver. */
import { checkCertificate } from '../../admin/doctor/certificate.ts';
import { checkLogin, checkLoginRequired } from '../../admin/doctor/endpoint-login.ts';
import { checkPort } from '../../admin/doctor/port.ts';
import { checkAddresses, checkName, checkPublicUrl } from '../../admin/doctor/public-url.ts';
import { resolveName } from '../../admin/doctor/resolve-name.ts';
import { checkThisHost } from '../../admin/doctor/this-host.ts';
import { createEndpointProbe, type ProbeEndpoint } from '../../admin/endpoint/endpoint-probe.ts';
import type { Finding } from '../../domain/finding.ts';
import { defaultSubscriptionName, endpointOf } from '../../domain/subscription.ts';
import { probeProof } from '../../http/probe-proof.ts';
import type { Io } from '../io.ts';
import { certificateSteps } from './certificate-steps.ts';
import type { DoctorSettings } from './doctor-settings.ts';
import type { Step } from './run-steps.ts';

export function endpointSteps(settings: DoctorSettings, io: Io): Step[] {
  const { nowUs } = io;
  const { publicUrl = '', serve, account, probeWithExtra } = settings;
  const endpoint = endpointOf(publicUrl, defaultSubscriptionName);
  const pairs = account?.endpoint.pairs ?? serve?.credentials.pairs;
  const proving = (probe: ProbeEndpoint) => provingProbe(probe, pairs?.at(-1), io);
  const withExtra = probeWithExtra && proving(probeWithExtra);
  // What one step finds out, and the next ones build on.
  let addresses: readonly string[] = [];
  let probe = proving(createEndpointProbe());
  return [
    { name: 'public URL', needs: [], run: async () => checkPublicUrl(settings.publicUrl) },
    {
      name: 'name',
      needs: ['public URL'],
      run: async () => {
        const named = await checkName({ publicUrl, resolveName });
        addresses = named.addresses;
        return named.findings;
      },
    },
    {
      name: 'public address',
      needs: ['name'],
      run: async () => checkAddresses({ addresses, isTest: withExtra !== null }),
    },
    {
      name: 'this host',
      needs: ['name'],
      run: async () => checkThisHost({ addresses, localAddresses: io.localAddresses() }),
    },
    ...certificateSteps(settings, io),
    { name: 'port', needs: ['name'], run: () => checkPort({ publicUrl }) },
    {
      name: 'certificate',
      needs: ['port'],
      run: async () => {
        const seen = await checkCertificate({ endpoint, publicly: probe, withExtra, nowUs });
        probe = seen.probe ?? probe;
        return seen.findings;
      },
    },
    {
      name: 'endpoint login',
      needs: pairs === undefined ? ['configuration', 'certificate'] : ['certificate'],
      run: async () => (pairs?.length ? checkLogin({ endpoint, pairs, probe }) : [noCredentials]),
    },
    {
      name: 'login required',
      needs: ['certificate'],
      run: () => checkLoginRequired({ endpoint, probe }),
    },
  ];
}

/** A probe without a login carries a proof, so that the receiver does not take it for a failed one. */
function provingProbe(
  probe: ProbeEndpoint,
  pair: { username: string; password: string } | undefined,
  { nowUs, newId }: Pick<Io, 'nowUs' | 'newId'>,
): ProbeEndpoint {
  if (pair === undefined) return probe;
  return (endpoint, credentials) =>
    probe(endpoint, credentials, credentials === null ? probeProof(pair, nowUs(), newId()) : null);
}

const noCredentials: Finding = {
  check: 'endpoint login',
  state: 'skipped',
  message: 'There are no endpoint credentials yet.',
  advice: 'Make them: `earshot credentials create`.',
};
