/** Orders and renews the certificate at an authority with acme-client (ACME, RFC 8555 and RFC 9773). */
import { Agent } from 'node:https';
import { type Authorization, Client, crypto } from 'acme-client';
import axios, { type AxiosRequestConfig } from 'axios';
import { z } from 'zod';
import type { AcquireLock } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import { type Finding, findingOf } from '../domain/finding.ts';
import { networkFault, retryAfterMs } from '../http/bounded-fetch.ts';
import { foreignText } from '../http/foreign-text.ts';
import { contextTrusting } from '../http/tls-settings.ts';
import {
  checkedPair,
  createKey,
  freshUs,
  type Issue,
  type OwnCertificate,
  renewalStatus,
  retryDelayUs,
  type SavedPair,
  writePair,
  writeState,
} from './acme-state.ts';
import { type ChallengePlace, serveResponse } from './challenge.ts';

export interface AcmeSettings extends Issue {
  challenge: 'http-01' | 'tls-alpn-01';
  httpListen: ChallengePlace['settings']['httpListen'];
  email: string | undefined;
  /** PEM of roots that are also trusted for the HTTPS of the authority. */
  extraCaPem: string | undefined;
  eab: { keyId: string; hmacKey: string } | undefined;
}

export interface AcmeContext extends ChallengePlace {
  settings: AcmeSettings;
  acquireLock: AcquireLock;
  /** Maximum wait for another process that is ordering. */
  lockWaitMs: number;
  nowUs: () => number;
  random: () => number;
  signal: AbortSignal;
}

const automatic = 'The next attempt is automatic.';
const reach =
  'Set the A and AAAA records of the name to this host, open port 80 (http-01) or 443 (tls-alpn-01) in all firewalls, and forward the port to EARSHOT_ACME_HTTP_LISTEN or EARSHOT_LISTEN.';
const binding =
  'Set EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY to the values from your account at the authority.';

/** Advice by type of the problem (RFC 8555, 6.7, and our own types). */
const adviceByType = new Map([
  ['unreachable', `${automatic} Check the network, EARSHOT_ACME_DIRECTORY and EARSHOT_ACME_CA.`],
  ['rateLimited', automatic],
  ['serverInternal', automatic],
  ['incomplete', `${automatic} EARSHOT_ACME_DIRECTORY must be the URL of an ACME directory.`],
  ['dns', 'Create an A or AAAA record for this host, or correct EARSHOT_PUBLIC_URL.'],
  ['connection', reach],
  ['incorrectResponse', reach],
  ['tls', reach],
  ['caa', 'Add this authority to the CAA record of the name, or remove the record.'],
  ['noChallenge', 'Set EARSHOT_ACME_CHALLENGE to a challenge that the authority offers.'],
  ['externalAccountRequired', binding],
  ['unauthorized', `${binding} For a new account, move acme/state.json to another folder.`],
  ['userActionRequired', 'Follow the instructions of the authority.'],
  ['unusable', 'Check the clock of this host, and the status page of the authority.'],
]);
const otherAdvice = 'Check EARSHOT_PUBLIC_URL, EARSHOT_ACME_DIRECTORY and EARSHOT_ACME_EMAIL.';

const detailCharactersMax = 400;
/** No real link is longer. */
const linkShape = /https:\/\/[^\s"'<>]{1,8000}/;

type FailureFacts = { link: string | null; retryAfterMs: number | null };

/**
 * Returns the failure of an order, with FailureFacts. `type` is without `urn:ietf:params:acme:error:`, `detail` a text of the authority
 * or ours. `facts.link` is where a person can resume a paused account: a link that explains a limit,
 * which ends without a person, is no such link.
 */
export function failureOf(
  { directoryUrl, host }: Issue,
  type: string,
  detail: string,
  retryAfterMs: number | null = null,
): AppError {
  const clean = (text: string, charactersMax = detailCharactersMax) =>
    foreignText(text, { secrets: [], charactersMax });
  const link = clean(linkShape.exec(detail)?.[0].replace(/[.,;:)\]]+$/, '') ?? '', 10_000);
  const before = detail.length <= detailCharactersMax ? detail.length : detail.search(linkShape);
  const reason = clean(link === '' ? detail : detail.slice(0, before));
  const ends = retryAfterMs !== null || /retry after|\/docs\//i.test(detail);
  const isPaused =
    link !== '' && type === 'rateLimited' && (!ends || /\bpaus|unpause|\bvisit\b/i.test(detail));
  const isCut = before < detail.length && link !== '';
  const said = isPaused ? 'the account is paused' : isCut ? `${reason} ${link}` : reason;
  const message = `${new URL(directoryUrl).host} issued no certificate for ${host} (${clean(type)}: ${said}).`;
  return new AppError('unavailable', message, {
    advice: isPaused
      ? `Only a person can resume the account: open ${link}`
      : (adviceByType.get(type) ?? otherAdvice),
    facts: { link: isPaused ? link : null, retryAfterMs },
  });
}

const requestTimeoutMs = 30_000;
const answerBytesMax = 2 ** 20;
/** With frequent nonce refusals, acme-client's limit of five would fail one order in ten. */
const maxBadNonceRetries = 20;

const problemSchema = z.looseObject({ type: z.string(), detail: z.string().default('no reason') });

/** Returns type and detail of a problem document; null for anything else. */
function problemIn(data: unknown): [type: string, detail: string] | null {
  const { data: problem } = problemSchema.safeParse(data);
  return problem ? [problem.type.split(':').at(-1) ?? '', problem.detail] : null;
}

type Asking = Pick<AcmeContext, 'settings' | 'signal'>;

/** Sends a request. Rejects with a failure for all refusals except a bad nonce, which acme-client retries. */
async function send({ settings, signal }: Asking, url: string, options: AxiosRequestConfig = {}) {
  const { extraCaPem } = settings;
  const secureContext = extraCaPem === undefined ? undefined : contextTrusting([extraCaPem]);
  // Not the timeout of axios, which restarts with each byte.
  const timeout = AbortSignal.timeout(requestTimeoutMs);
  const answer = await axios
    .request<unknown>({
      ...{ ...options, url, maxRedirects: 0, maxContentLength: answerBytesMax },
      headers: { ...options.headers, 'User-Agent': 'earshot' },
      httpsAgent: new Agent({ secureContext }),
      signal: AbortSignal.any([signal, timeout]),
      validateStatus: null,
    })
    .catch((error: unknown) => {
      const reason = timeout.aborted ? 'it did not answer in time' : networkFault(error);
      throw failureOf(settings, 'unreachable', reason);
    });
  const { status, data, headers } = answer;
  const kind = status === 429 ? 'rateLimited' : status >= 500 ? 'serverInternal' : 'refused';
  const [type, detail] = problemIn(data) ?? [kind, `status ${status}`];
  if (status < 400 || type === 'badNonce') return answer;
  const waitMs = retryAfterMs({ get: (name) => headers[name] ?? null });
  throw failureOf(settings, type.startsWith('about') ? kind : type, detail, waitMs);
}

/** Polling of a validation and of an order: about two minutes. */
const polling = { backoffMin: 250, backoffMax: 2_000, backoffAttempts: 60 };

/** Orders a certificate, from the account to the chain. An interrupted order is ordered again. */
async function orderCertificate(context: AcmeContext, accountKey: string): Promise<SavedPair> {
  const { settings, signal } = context;
  const { directoryUrl, host, email, challenge, eab } = settings;
  const client = new Client({
    ...{ directoryUrl, accountKey, ...polling },
    ...(eab && { externalAccountBinding: { kid: eab.keyId, hmacKey: eab.hmacKey } }),
  });
  const ended = Promise.withResolvers<never>();
  const request = createRequest(context, ended.reject);
  Object.assign(Reflect.get(client, 'http'), { request, maxBadNonceRetries });
  const key = createKey();
  const [, csr] = await crypto.createCsr({ altNames: [host] }, key);
  let end = async () => {};
  const order = async () => {
    // Not the function of the client, which also updates an existing account: some authorities refuse that.
    const contact = email === undefined ? {} : { contact: [`mailto:${email}`] };
    await Reflect.get(client, 'api').createAccount({ termsOfServiceAgreed: true, ...contact });
    return client.auto({
      ...{ csr, skipChallengeVerification: true, challengePriority: [challenge] },
      challengeCreateFn: async (authorization, { type, token }, text) => {
        if (String(type) !== challenge)
          throw failureOf(settings, 'noChallenge', `not ${challenge}`);
        const isAlpn = challenge === 'tls-alpn-01';
        const alpn = isAlpn ? await alpnPair(authorization, text) : null;
        end = await serveResponse(context, { token, text, alpn });
      },
      challengeRemoveFn: async () => undefined,
    });
  };
  signal.addEventListener('abort', () => ended.reject(signal.reason), { once: true });
  try {
    return { directoryUrl, host, key, chain: await Promise.race([order(), ended.promise]) };
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw failureOf(settings, 'incomplete', 'it did not complete the order');
  } finally {
    await end();
  }
}

/**
 * Returns the function by which acme-client sends requests. Its own repeats refused requests, for hours if the authority
 * requests a delay, and loses the type of a problem. Here, a failure ends the order, and later requests do nothing.
 */
function createRequest(context: AcmeContext, end: (failure: unknown) => void) {
  let isEnded = false;
  const fail = (failure: unknown) => {
    isEnded = true;
    end(failure);
    throw failure;
  };
  return async (url: string, method: string, options: AxiosRequestConfig) => {
    if (isEnded || context.signal.aborted) return new Promise(() => {});
    const headers = { 'Content-Type': 'application/jose+json' };
    const answer = await send(context, url, { ...options, method, headers }).catch(fail);
    const [type, detail] = problemIn(Reflect.get(Object(answer.data), 'error')) ?? [];
    if (type === undefined || detail === undefined) return answer;
    // For an account, `unauthorized` has another meaning than for a challenge.
    const kind = type === 'unauthorized' ? 'incorrectResponse' : type;
    return fail(failureOf(context.settings, kind, detail));
  };
}

async function alpnPair(authorization: Authorization, text: string) {
  const [key, cert] = await crypto.createAlpnCertificate(authorization, text, createKey());
  return { key: key.toString(), cert: cert.toString() };
}

const directorySchema = z.looseObject({ newOrder: z.string() });

/** Checks for `earshot doctor` that the authority answers. */
export function checkAuthority(asking: Asking): Promise<Finding[]> {
  const { settings } = asking;
  return findingOf('authority', automatic, async () => {
    const { data } = await send(asking, settings.directoryUrl);
    if (directorySchema.safeParse(data).success)
      return `${new URL(settings.directoryUrl).host} answers.`;
    throw failureOf(settings, 'incomplete', 'it is no ACME directory');
  });
}

/** `due`: if it is due. `asked`: the same, without the delay after failures. `anyway`: always. */
export type RenewWhen = 'due' | 'asked' | 'anyway';

/**
 * Orders a certificate if needed, and saves it; resolves with null if not. Rejects with `conflict` while another process
 * orders, and with a failure, which is saved. `latestOwn`: see `renewalStatus`.
 */
export async function renew(
  context: AcmeContext,
  when: RenewWhen,
  latestOwn: OwnCertificate | null = null,
): Promise<OwnCertificate | null> {
  const { dataDir, settings, nowUs } = context;
  const look = () => renewalStatus(dataDir, settings, latestOwn);
  const before = look();
  if (!isDue(before, when, nowUs()) && !needsAdvice(before, nowUs())) return null;
  const { lockWaitMs: waitMs, signal } = context;
  const release = await context.acquireLock('certificate', { waitMs, signal });
  try {
    if (needsAdvice(look(), nowUs())) await refreshAdvice(context, look());
    const now = look();
    // Another process may have renewed it during the wait.
    const isNew = now.saved?.cert !== before.saved?.cert;
    return isDue(now, isNew ? 'due' : when, nowUs()) ? await attempt(context, now) : null;
  } finally {
    release();
  }
}

type Status = ReturnType<typeof renewalStatus>;

function isDue({ certificate, due, state }: Status, when: RenewWhen, nowUs: number): boolean {
  if (when !== 'anyway' && due !== null && nowUs < due.atUs) return false;
  const { failures, lastAttemptAtUs, nextAttemptAtUs } = state;
  const isDelayed = when === 'due' && (failures > 0 || certificate !== null);
  // A clock that was set back does not extend the delay.
  return !isDelayed || nowUs >= (nextAttemptAtUs ?? 0) || nowUs < (lastAttemptAtUs ?? 0);
}

const dayUs = 86_400_000_000;

function needsAdvice({ certificateId, state: { window } }: Status, nowUs: number): boolean {
  if (certificateId === null) return false;
  // A day ahead: the clock was set back.
  const isFresh = window !== null && Math.abs(nowUs - window.checkedAtUs) < dayUs;
  return window?.certificateId !== certificateId || !isFresh;
}

/** Time of RFC 3339 in microseconds. */
const timeUs = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text) * 1000);
const renewalInfoSchema = z.looseObject({
  suggestedWindow: z.looseObject({ start: timeUs, end: timeUs }),
});

/** Saves a random time in the renewal window of the authority (RFC 9773). Ignored when it cannot be read. */
async function refreshAdvice(
  context: AcmeContext,
  { state, certificateId }: Status,
): Promise<void> {
  const readAdvice = async () => {
    const directory = await send(context, context.settings.directoryUrl);
    const { renewalInfo } = z.looseObject({ renewalInfo: z.string() }).parse(directory.data);
    const { data } = await send(context, `${renewalInfo}/${certificateId}`);
    const { start, end } = renewalInfoSchema.parse(data).suggestedWindow;
    return Math.round(start + context.random() * Math.max(0, end - start));
  };
  const known = state.window?.certificateId === certificateId ? state.window?.renewAtUs : null;
  const renewAtUs = await readAdvice().catch(() => known ?? null);
  const window = { certificateId: certificateId ?? '', renewAtUs, checkedAtUs: context.nowUs() };
  await writeState(context.dataDir, { ...state, window });
}

async function attempt(context: AcmeContext, { state }: Status): Promise<OwnCertificate> {
  const { dataDir, nowUs, random, signal } = context;
  const begun = { ...state, lastAttemptAtUs: nowUs() };
  // On disk before the authority receives the key, so that an interruption creates no second account. With a full
  // disk, nothing is ordered.
  await writeState(dataDir, begun);
  try {
    const pair = await orderCertificate(context, state.accountKey);
    const certificate = requireUsable(pair, context);
    await writePair(dataDir, pair);
    const [lastSuccessAtUs, nextAttemptAtUs] = [nowUs(), nowUs() + freshUs(certificate)];
    const success = { failures: 0, lastSuccessAtUs, nextAttemptAtUs, lastFailure: null };
    await writeState(dataDir, { ...begun, ...success });
    return certificate;
  } catch (error) {
    // The process is ending: this is no failure.
    if (signal.aborted)
      throw new AppError('cancelled', 'Interrupted. The next start orders again.');
    if (!(error instanceof AppError)) throw error;
    const failures = state.failures + 1;
    const { message, advice = '' } = error;
    const { link = null, retryAfterMs: waitMs = null } = error.facts as Partial<FailureFacts>;
    const delayUs = retryDelayUs(failures, waitMs, { needsPerson: link !== null, random });
    const failed = { failures, nextAttemptAtUs: nowUs() + delayUs };
    const lastFailure = { message, advice, link };
    // The failure itself is more important than one to save it.
    await writeState(dataDir, { ...begun, ...failed, lastFailure }).catch(() => {});
    throw error;
  }
}

/** Checks the certificate: one that cannot be used must not replace a valid one. */
function requireUsable(pair: SavedPair, { settings, nowUs }: AcmeContext): OwnCertificate {
  const certificate = checkedPair(pair, 'the issued certificate');
  const isExpired = certificate.notAfter.getTime() * 1000 <= nowUs();
  if (!isExpired && certificate.covers(settings.host)) return certificate;
  throw failureOf(settings, 'unusable', isExpired ? 'expired' : 'for another name');
}
