/** The doctor's checks of how the certificate comes here: authority, challenge, renewal. */
import { AppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/dates.ts';
import { type Finding, failedFinding } from '../../domain/finding.ts';
import { networkFault } from '../../http/bounded-fetch.ts';
import { openAuthority } from './authority.ts';
import { challengePath, type ProbeDeps } from './challenge.ts';
import type { AcmeContext } from './order.ts';
import { explainFailure } from './problem.ts';
import { isNearEnd, renewalOutlook } from './renewal-time.ts';

const knockTimeoutMs = 10_000;

const hourUs = 3_600_000_000;

/** A receiver that runs looks every ten seconds. */
const overdueUs = hourUs;

/** Whether the authority answers at all. */
export async function checkAuthority(context: AcmeContext): Promise<Finding[]> {
  const check = 'authority';
  const { host } = new URL(context.settings.directoryUrl);
  try {
    const { meta } = await (await openAuthority(context)).readDirectory();
    if (meta?.externalAccountRequired === true && context.settings.eab === undefined) {
      const message = `${host} asks for an account that is bound to one of yours there.`;
      const advice = 'Set EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY.';
      return [{ check, state: 'fail', message, advice }];
    }
    return [{ check, state: 'pass', message: `${host} answers.` }];
  } catch (error) {
    return [failedFinding(check, explainFailure(error, context.settings), 'Try again later.')];
  }
}

/**
 * Knocks at the name as the authority would, on `port` 80: the answer shows that the name leads here.
 * Opens the door itself when no receiver runs.
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
    return [await knock(`http://${settings.host}:${port}${challengePath}${token}`, text, ask)];
  } catch (error) {
    return [failedFinding(check, error, 'Set EARSHOT_ACME_HTTP_LISTEN to what port 80 leads to.')];
  } finally {
    await challenges.removeProbe(token).catch(() => undefined);
  }
}

const handshakeFinding: Finding = {
  check: 'challenge',
  state: 'skipped',
  message:
    'tls-alpn-01 is answered on the public port; `earshot certificate test` tries it for real.',
};

async function knock(url: string, text: string, ask: typeof fetch): Promise<Finding> {
  const check = 'challenge';
  const { hostname, port } = new URL(url);
  const where = `port ${port || '80'} of ${hostname}`;
  const leadHere =
    'Let A and AAAA records lead to this host, and port 80 to EARSHOT_ACME_HTTP_LISTEN, in every firewall and router on the way.';
  try {
    const signal = AbortSignal.timeout(knockTimeoutMs);
    const answer = await ask(url, { signal, redirect: 'manual' });
    if (answer.ok && (await answer.text()) === text) {
      const message = `A challenge is answered on ${where}, as seen from this machine.`;
      return { check, state: 'pass', message };
    }
    const message = `Something else answers on ${where} (status ${answer.status}).`;
    return { check, state: 'fail', message, advice: leadHere };
  } catch (error) {
    const message = `No challenge could be asked for on ${where}: ${networkFault(error)}.`;
    const inside =
      'Some routers do not lead a machine back to its own public address: then `earshot certificate test` tells.';
    return { check, state: 'fail', message, advice: `${leadHere} ${inside}` };
  }
}

/** What the last tries came to, and whether the next is where it should be. */
export async function checkRenewal(context: AcmeContext): Promise<Finding[]> {
  const check = 'renewal';
  const { folder, settings } = context;
  const nowUs = context.nowUs();
  try {
    const { certificate, state, due } = await renewalOutlook(folder, settings, nowUs);
    const nearEnd = certificate === null || isNearEnd(certificate, nowUs);
    if (state.lastFailure !== null && state.failures > 0) {
      const { message, advice = '' } = state.lastFailure;
      const times = state.failures === 1 ? 'The last try failed' : `${state.failures} tries failed`;
      const next =
        state.nextTryAtUs === null ? '' : ` Next try: ${shortDateUs(state.nextTryAtUs)}.`;
      return [
        { check, state: nearEnd ? 'fail' : 'warn', message: `${times}. ${message}${next}`, advice },
      ];
    }
    if (certificate !== null && due === null) {
      const message = `The certificate is not for ${settings.host}, or of another authority.`;
      const advice = 'Start the receiver, which gets the right one: `earshot start`.';
      return [{ check, state: 'warn', message, advice }];
    }
    if (due === null) {
      const message = 'There is no certificate yet, and none was asked for.';
      const advice = 'Start the receiver, which gets one: `earshot start`.';
      return [{ check, state: 'warn', message, advice }];
    }
    if (due.atUs + overdueUs < nowUs) {
      const message = `The certificate was to be renewed on ${shortDateUs(due.atUs)}, and nothing has tried it.`;
      const advice = 'Start the receiver, which renews it; or run `earshot certificate renew`.';
      return [{ check, state: nearEnd ? 'fail' : 'warn', message, advice }];
    }
    const last =
      state.lastSuccessAtUs === null ? '' : `Renewed on ${shortDateUs(state.lastSuccessAtUs)}; `;
    return [{ check, state: 'pass', message: `${last}the next time is ${shortDateUs(due.atUs)}.` }];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return [failedFinding(check, error, 'Look at the files in the data directory.')];
  }
}
