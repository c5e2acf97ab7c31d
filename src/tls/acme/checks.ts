/** Checks of ACME for `earshot doctor`: authority, challenge, renewal. */
import { AppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/dates.ts';
import { type Finding, failedFinding } from '../../domain/finding.ts';
import { networkFault } from '../../http/bounded-fetch.ts';
import { openAuthority } from './authority.ts';
import { challengePath, type ProbeDeps } from './challenge.ts';
import type { AcmeContext } from './order.ts';
import { explainFailure } from './problem.ts';
import { isNearEnd, renewalOutlook } from './renewal-time.ts';

const probeTimeoutMs = 10_000;

const hourUs = 3_600_000_000;

/** A renewal is overdue after this time; a running receiver checks every ten seconds. */
const overdueUs = hourUs;

/** Checks that the authority answers. */
export async function checkAuthority(context: AcmeContext): Promise<Finding[]> {
  const check = 'authority';
  const { host } = new URL(context.settings.directoryUrl);
  try {
    const { meta } = await (await openAuthority(context)).readDirectory();
    if (meta?.externalAccountRequired === true && context.settings.eab === undefined) {
      const message = `${host} requires an external account binding.`;
      const advice = 'Set EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY.';
      return [{ check, state: 'fail', message, advice }];
    }
    return [{ check, state: 'pass', message: `${host} answers.` }];
  } catch (error) {
    return [failedFinding(check, explainFailure(error, context.settings), 'Retry later.')];
  }
}

/**
 * Sends a request to `port` 80 of the name, as the authority does, to check that it reaches this host. Opens the
 * listener if no receiver is running.
 */
export async function checkChallenge(
  context: AcmeContext,
  { port, fetch: ask, newId }: ProbeDeps & { port: number },
): Promise<Finding[]> {
  const check = 'challenge';
  const { settings, challenges } = context;
  if (settings.challenge === 'tls-alpn-01') return [handshakeFinding];
  const token = `doctor-${newId()}`;
  const text = newId();
  try {
    await context.openListener();
    await challenges.putProbe(token, text);
    return [await probe(`http://${settings.host}:${port}${challengePath}${token}`, text, ask)];
  } catch (error) {
    return [
      failedFinding(
        check,
        error,
        'Set EARSHOT_ACME_HTTP_LISTEN to the address that port 80 is forwarded to.',
      ),
    ];
  } finally {
    await challenges.removeProbe(token).catch(() => undefined);
  }
}

const handshakeFinding: Finding = {
  check: 'challenge',
  state: 'skipped',
  message: 'tls-alpn-01 uses the public port. To test this challenge: `earshot certificate test`.',
};

async function probe(url: string, text: string, ask: typeof fetch): Promise<Finding> {
  const check = 'challenge';
  const { hostname, port } = new URL(url);
  const target = `port ${port || '80'} of ${hostname}`;
  const forwardHere =
    'Set the A and AAAA records to this host, and forward port 80 to EARSHOT_ACME_HTTP_LISTEN in all firewalls and routers.';
  try {
    const signal = AbortSignal.timeout(probeTimeoutMs);
    const answer = await ask(url, { signal, redirect: 'manual' });
    if (answer.ok && (await answer.text()) === text) {
      const message = `A test from this machine reached earshot on ${target}.`;
      return { check, state: 'pass', message };
    }
    const message = `Another server answers on ${target} (status ${answer.status}).`;
    return { check, state: 'fail', message, advice: forwardHere };
  } catch (error) {
    const message = `The test of ${target} failed: ${networkFault(error)}.`;
    const hairpin =
      'Some routers do not allow connections to their own public address. In that case, run `earshot certificate test`.';
    return { check, state: 'fail', message, advice: `${forwardHere} ${hairpin}` };
  }
}

/** Checks the last attempts, and that the next renewal is not overdue. */
export async function checkRenewal(context: AcmeContext): Promise<Finding[]> {
  const check = 'renewal';
  const { folder, settings } = context;
  const nowUs = context.nowUs();
  try {
    const { certificate, state, due } = await renewalOutlook(folder, settings, nowUs);
    const nearEnd = certificate === null || isNearEnd(certificate, nowUs);
    if (state.lastFailure !== null && state.failures > 0) {
      const { message, advice = '' } = state.lastFailure;
      const times =
        state.failures === 1
          ? 'The last attempt failed'
          : `The last ${state.failures} attempts failed`;
      const next =
        state.nextTryAtUs === null ? '' : ` Next attempt: ${shortDateUs(state.nextTryAtUs)} UTC.`;
      return [
        { check, state: nearEnd ? 'fail' : 'warn', message: `${times}. ${message}${next}`, advice },
      ];
    }
    if (certificate !== null && due === null) {
      const message = `The certificate is from another authority, or is not for ${settings.host}.`;
      const advice = 'To order a new certificate, start the receiver: `earshot start`.';
      return [{ check, state: 'warn', message, advice }];
    }
    if (due === null) {
      const message = 'There is no certificate yet, and none was ordered.';
      const advice = 'To order a certificate, start the receiver: `earshot start`.';
      return [{ check, state: 'warn', message, advice }];
    }
    if (due.atUs + overdueUs < nowUs) {
      const message = `The renewal was due on ${shortDateUs(due.atUs)} UTC, but there was no attempt.`;
      const advice =
        'To renew the certificate, start the receiver, or run `earshot certificate renew`.';
      return [{ check, state: nearEnd ? 'fail' : 'warn', message, advice }];
    }
    const last =
      state.lastSuccessAtUs === null
        ? ''
        : `Last renewal: ${shortDateUs(state.lastSuccessAtUs)} UTC. `;
    const message = `${last}Next renewal: ${shortDateUs(due.atUs)} UTC.`;
    return [{ check, state: 'pass', message }];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return [failedFinding(check, error, 'Check the folder acme in the data directory.')];
  }
}
