/** Orders and renews the certificate at an authority with acme-client (ACME, RFC 8555 and RFC 9773). */
import { Agent } from 'node:https';
import { AuthorityKeyIdentifierExtension, X509Certificate } from '@peculiar/x509';
import { Client, crypto } from 'acme-client';
import axios, { type AxiosRequestConfig } from 'axios';
import { z } from 'zod';
import type { AcquireLock } from '../../core/host/job.ts';
import { answerBytesMax, networkFault, retryAfterMs } from '../../core/http/bounded-fetch.ts';
import { foreignText } from '../../core/http/service-error.ts';
import { contextTrusting } from '../../core/http/tls-settings.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { dayUs } from '../../core/terms/dates.ts';
import { faultOf, nextStepOf } from '../../core/terms/faults.ts';
import { certificateFault } from './certificate.ts';
import { type ChallengePlace, createResponder } from './challenge.ts';
import {
  checkedPair,
  createKey,
  type Issue,
  type OwnCertificate,
  renewalStatus,
  retryDelayUs,
  type SavedPair,
  writePair,
  writeState,
} from './renewal.ts';
import type { AcmeConfig } from './settings.ts';

export interface AcmeContext extends ChallengePlace {
  settings: AcmeConfig;
  acquireLock: AcquireLock;
  nowUs: () => number;
  random: () => number;
  signal: AbortSignal;
}

/** Maximum length of a text of the authority. For a paused account, it has the link where a person can resume it. */
const detailCharactersMax = 4_000;

/**
 * Returns the failure of an order. `type` is without `urn:ietf:params:acme:error:`, `detail` a text of the authority or
 * ours.
 */
export function failureOf(
  { directoryUrl, host }: Issue,
  type: string,
  detail: string,
  retryAfterMs: number | null = null,
): AppError {
  const clean = (text: string) =>
    foreignText(text, { secrets: [], charactersMax: detailCharactersMax });
  const message = `${new URL(directoryUrl).host} issued no certificate for ${host} (${clean(type)}: ${clean(detail)}).`;
  const fault = faultOf(`acme ${type}`);
  const facts = { fault: fault.code, retryAfterMs };
  return new AppError('unavailable', message, { advice: nextStepOf(fault), facts });
}

const requestTimeoutMs = 30_000;
/** With frequent nonce refusals, acme-client's limit of five would fail one order in ten. */
const maxBadNonceRetries = 20;

const problemSchema = z.looseObject({ type: z.string(), detail: z.string().default('no reason') });

/** Returns type and detail of a problem document; null for anything else. */
function problemIn(data: unknown): [type: string, detail: string] | null {
  const { data: problem } = problemSchema.safeParse(data);
  return problem ? [problem.type.split(':').at(-1) ?? '', problem.detail] : null;
}

/** Sends a request. Rejects with a failure for all refusals except a bad nonce, which acme-client retries. */
async function send(context: AcmeContext, url: string, options: AxiosRequestConfig = {}) {
  const { settings, signal } = context;
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
  const [type, detail] = problemIn(data) ?? ['incomplete', `status ${status}`];
  if (status < 400 || type === 'badNonce') return answer;
  const waitMs = retryAfterMs({ get: (name) => headers[name] ?? null });
  throw failureOf(settings, type, detail, waitMs);
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
  const responder = createResponder(context);
  const order = async () => {
    // Not the function of the client, which also updates an existing account: some authorities refuse that.
    const contact = email === undefined ? {} : { contact: [`mailto:${email}`] };
    await Reflect.get(client, 'api').createAccount({ termsOfServiceAgreed: true, ...contact });
    return client.auto({
      ...{ csr, skipChallengeVerification: true, challengePriority: [challenge] },
      challengeCreateFn: async (authorization, { type, token }, text) => {
        if (String(type) !== challenge)
          throw failureOf(settings, 'noChallenge', `the authority does not offer ${challenge}`);
        const pair = await crypto.createAlpnCertificate(authorization, text, createKey());
        const alpn = { key: `${pair[0]}`, cert: `${pair[1]}` };
        await responder.serve({ token, text, alpn });
      },
      challengeRemoveFn: async () => undefined,
    });
  };
  signal.addEventListener('abort', () => ended.reject(signal.reason), { once: true });
  try {
    return { directoryUrl, key, chain: await Promise.race([order(), ended.promise]) };
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw failureOf(settings, 'incomplete', 'it did not complete the order');
  } finally {
    await responder.end();
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

/** Time for another process to finish its order of the same certificate. */
const requestedWaitMs = 300_000;

/** `due`: if it is due. `asked`: the same, without the delay after failures. `anyway`: always. */
export type RenewWhen = 'due' | 'asked' | 'anyway';

/**
 * Orders a certificate if needed, and saves it; resolves with null if not. Rejects with `conflict` while another process
 * orders (`due`: at once), and with a failure, which is saved.
 */
export async function renew(context: AcmeContext, when: RenewWhen): Promise<OwnCertificate | null> {
  const { dataDir, settings, nowUs, signal } = context;
  const read = () => renewalStatus(dataDir, settings);
  const before = read();
  if (!isDue(before, when, nowUs()) && !needsAdvice(before, nowUs())) return null;
  const waitMs = when === 'due' ? 0 : requestedWaitMs;
  const release = await context.acquireLock('certificate', { waitMs, signal });
  try {
    if (needsAdvice(read(), nowUs())) await saveAdvice(context, read());
    const now = read();
    // Another process may have renewed it during the wait.
    const isNew = now.saved?.cert !== before.saved?.cert;
    return isDue(now, isNew ? 'due' : when, nowUs()) ? await attempt(context, now) : null;
  } finally {
    release();
  }
}

type Status = ReturnType<typeof renewalStatus>;

function isDue({ certificate, renewsAtUs, state }: Status, when: RenewWhen, nowUs: number) {
  if (when === 'anyway') return true;
  if (renewsAtUs !== null && nowUs < renewsAtUs) return false;
  const { failures, lastAttemptAtUs, nextAttemptAtUs } = state;
  // A lost certificate is ordered again at once.
  if (when === 'asked' || (certificate === null && failures === 0)) return true;
  // A clock that was set back does not extend the delay.
  return nowUs >= (nextAttemptAtUs ?? 0) || nowUs < (lastAttemptAtUs ?? 0);
}

/** Once a day; also if the last time is a day ahead, because the clock was set back. */
function needsAdvice({ certificate, state: { window } }: Status, nowUs: number): boolean {
  return certificate !== null && !(Math.abs(nowUs - (window?.checkedAtUs ?? 0)) < dayUs);
}

/** Time of RFC 3339 in microseconds. */
const timeUs = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text) * 1000);
const renewalInfoSchema = z.looseObject({
  suggestedWindow: z.looseObject({ start: timeUs, end: timeUs }),
});

/** Saves a random time in the renewal window of the authority (RFC 9773); the last one when it cannot be read. */
async function saveAdvice(context: AcmeContext, { state, certificate }: Status): Promise<void> {
  const readAdvice = async () => {
    const directory = await send(context, context.settings.directoryUrl);
    const { renewalInfo } = z.looseObject({ renewalInfo: z.string() }).parse(directory.data);
    const id = certificateIdOf(certificate?.cert ?? '');
    const { data } = await send(context, `${renewalInfo}/${id}`);
    const { start, end } = renewalInfoSchema.parse(data).suggestedWindow;
    return Math.round(start + context.random() * Math.max(0, end - start));
  };
  const renewAtUs = await readAdvice().catch(() => state.window?.renewAtUs ?? null);
  const window = { renewAtUs, checkedAtUs: context.nowUs() };
  await writeState(context.dataDir, { ...state, window });
}

/** Returns the id of RFC 9773, 4.1: the key identifier of the issuer and the serial number, with the sign byte of DER. */
export function certificateIdOf(chainPem: string): string {
  const certificate = new X509Certificate(chainPem);
  const issuer = certificate.getExtension(AuthorityKeyIdentifierExtension);
  const serial = certificate.serialNumber.replace(/^(?=[89a-f])/i, '00');
  const parts = [issuer?.keyId ?? '', serial];
  return parts.map((hex) => Buffer.from(hex, 'hex').toString('base64url')).join('.');
}

async function attempt(context: AcmeContext, { state }: Status): Promise<OwnCertificate> {
  const { dataDir, settings, nowUs, random, signal } = context;
  const begun = { ...state, lastAttemptAtUs: nowUs() };
  // On disk before the authority receives the key, so that an interruption creates no second account. With a full
  // disk, nothing is ordered.
  await writeState(dataDir, begun);
  try {
    const pair = await orderCertificate(context, state.accountKey);
    const certificate = checkedPair(pair, 'the issued certificate');
    const fault = certificateFault(certificate, { host: settings.host, nowUs: nowUs() });
    // One that cannot be used must not replace a valid one.
    if (fault !== null) throw failureOf(settings, 'unusable', fault.clause);
    await writePair(dataDir, pair);
    // A new certificate that is already due means a wrong clock or a fault of the authority. Let's Encrypt allows five
    // in a week.
    const freshUs = Math.min(2 * dayUs, (certificate.notAfterUs - certificate.notBeforeUs) / 4);
    const [lastSuccessAtUs, nextAttemptAtUs] = [nowUs(), Math.round(nowUs() + freshUs)];
    const success = { failures: 0, lastFailure: null, window: null };
    await writeState(dataDir, { ...begun, ...success, lastSuccessAtUs, nextAttemptAtUs });
    return certificate;
  } catch (error) {
    // The process is ending: this is no failure.
    if (signal.aborted)
      throw new AppError('cancelled', 'Interrupted. The next start orders again.');
    if (!(error instanceof AppError)) throw error;
    const failures = state.failures + 1;
    const waitMs = Number(error.facts.retryAfterMs ?? 0);
    const nextAttemptAtUs = nowUs() + retryDelayUs(failures, waitMs * 1_000, random);
    const failed = { failures, nextAttemptAtUs, lastFailure: { text: error.text } };
    // The failure itself is more important than one to save it.
    await writeState(dataDir, { ...begun, ...failed }).catch(() => {});
    throw error;
  }
}
