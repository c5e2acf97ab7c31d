/** The doctor's checks of who is let in: who has the credentials is, others are not. */
import type { Finding } from '../../domain/finding.ts';
import type { ProbeEndpoint } from '../endpoint/endpoint-probe.ts';
import type { EndpointCredentials } from '../service/subscription-client.ts';

/** GET with each pair that is accepted, which must be 200. */
export async function checkLogin(options: {
  endpoint: string;
  pairs: readonly EndpointCredentials[];
  probe: ProbeEndpoint;
}): Promise<Finding[]> {
  const check = 'endpoint login';
  const { endpoint, pairs, probe } = options;
  const findings: Finding[] = [];
  for (const [i, pair] of pairs.entries()) {
    const { fault } = await probe(endpoint, pair);
    // Numbered: a user name is half of the credentials.
    const which = pairs.length === 1 ? '' : ` (pair ${i + 1} of ${pairs.length})`;
    if (fault === null) {
      const message = `GET with the credentials is answered with 200${which}.`;
      findings.push({ check, state: 'pass', message });
    } else {
      const { message, advice } = fault;
      findings.push({ check, state: 'fail', message: `${message}${which}`, advice });
    }
  }
  if (pairs.length > 1) {
    const message = 'A rotation of the credentials was begun, and is not finished.';
    const advice = '`earshot credentials rotate` goes on from where it was.';
    findings.push({ check: 'rotation', state: 'warn', message, advice });
  }
  return findings;
}

/** GET without credentials, which must be 401: after anything else anybody may be let in. */
export async function checkLoginRequired(options: {
  endpoint: string;
  probe: ProbeEndpoint;
}): Promise<Finding[]> {
  const check = 'login required';
  const { status, fault } = await options.probe(options.endpoint, null);
  if (status === 401) {
    const message = 'GET without credentials is answered with 401.';
    return [{ check, state: 'pass', message }];
  }
  if (fault === null) {
    const message =
      'GET without credentials is answered with 200: the endpoint is open to anybody.';
    const advice =
      'Check that the receiver is what answers, and that a proxy in front adds no credentials of its own.';
    return [{ check, state: 'fail', message, advice }];
  }
  const message = `GET without credentials must be answered with 401. ${fault.message}`;
  return [{ check, state: 'fail', message, advice: fault.advice }];
}
