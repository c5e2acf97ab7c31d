/** Client of one certificate authority over ACME (RFC 8555) with acme-client, and our account there. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Agent } from 'node:https';
import { axios as acmeAxios, Client, crypto, directory as knownDirectories } from 'acme-client';
import axios, { AxiosError, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { z } from 'zod';
import { errorText } from '../../domain/app-error.ts';
import { jsonOf } from '../../domain/text.ts';
import { networkFault, retryAfterMs } from '../../http/bounded-fetch.ts';
import { contextTrusting } from '../../http/tls-settings.ts';
import { AcmeProblem, isAcmeProblem, isTransient, problemType } from './problem.ts';
import type { AcmeFolder } from './state.ts';

/** Configuration of one certificate and its authority. */
export interface AcmeSettings {
  directoryUrl: string;
  /** The only name in the certificate. */
  host: string;
  challenge: 'http-01' | 'tls-alpn-01';
  email: string | undefined;
  /** PEM of roots that are also trusted for the HTTPS of the authority. */
  extraCaPem: string | undefined;
  eab: { keyId: string; hmacKey: string } | undefined;
}

interface AuthoritySettings extends Pick<AcmeSettings, 'directoryUrl' | 'extraCaPem' | 'eab'> {
  /** PEM; identifies the account. */
  accountKey: string;
  /** Null before the account was created or found. */
  accountUrl: string | null;
  /** Aborts the calls in progress. */
  signal: AbortSignal;
  /** Timeout for a complete answer. */
  requestTimeoutMs?: number;
}

/** Used fields of a directory (RFC 8555, 7.1.1; RFC 9773, 3). */
const directorySchema = z.looseObject({
  newNonce: z.string(),
  newAccount: z.string(),
  newOrder: z.string(),
  renewalInfo: z.string().optional(),
  meta: z
    .looseObject({
      termsOfService: z.string().optional(),
      externalAccountRequired: z.boolean().optional(),
    })
    .optional(),
});
export type Directory = z.infer<typeof directorySchema>;

const problemSchema = z.looseObject({
  type: z.string().optional(),
  detail: z.string().optional(),
  subproblems: z.array(z.looseObject({ detail: z.string().optional() })).optional(),
});

/** Used fields of an order (7.1.3). */
const orderSchema = z.looseObject({
  url: z.string(),
  status: z.enum(['pending', 'ready', 'processing', 'valid', 'invalid']),
  authorizations: z.array(z.string()),
  finalize: z.string(),
  certificate: z.string().optional(),
  error: problemSchema.optional(),
});
export type AcmeOrder = z.infer<typeof orderSchema>;

/** A challenge, which validates the name (7.1.5). */
const challengeSchema = z.looseObject({
  type: z.string(),
  url: z.string(),
  status: z.string(),
  token: z.string().optional(),
  error: problemSchema.optional(),
});
type AcmeChallenge = z.infer<typeof challengeSchema>;

const authorizationSchema = z.looseObject({
  status: z.string(),
  challenges: z.array(challengeSchema),
});
export type AcmeAuthorization = z.infer<typeof authorizationSchema>;

/** Time of RFC 3339 in microseconds; one that does not fit is an error. */
const timeUs = z.iso
  .datetime({ offset: true })
  .transform((text) => Date.parse(text) * 1000)
  .pipe(z.int());

const renewalInfoSchema = z.looseObject({
  suggestedWindow: z.looseObject({ start: timeUs, end: timeUs }),
});

/** With frequent nonce refusals, acme-client's limit of five would fail one order in ten. */
const nonceRetriesMax = 20;

export type Authority = ReturnType<typeof createAuthority>;

/** Each call rejects with AcmeProblem. Only refused nonces are retried. */
export function createAuthority(settings: AuthoritySettings) {
  const { directoryUrl, accountKey, accountUrl, eab } = settings;
  const exchange = createExchange(settings);
  const client = new Client({
    directoryUrl,
    accountKey,
    ...(accountUrl === null ? {} : { accountUrl }),
    ...(eab === undefined
      ? {}
      : { externalAccountBinding: { kid: eab.keyId, hmacKey: eab.hmacKey } }),
  });
  Object.assign(Reflect.get(client, 'http'), { maxBadNonceRetries: nonceRetriesMax });
  const answered = <Value>(schema: z.ZodType<Value>, calls: () => Promise<unknown>) =>
    exchange(async () => read(schema, await calls().catch(asProblem)));
  const get = (url: string) => acmeAxios.get<unknown>(url);
  return {
    readDirectory: () =>
      answered(directorySchema, async () => (await get(directoryUrl)).data).catch(
        aboutTheDirectory,
      ),
    /** Creates or finds the account of the key, updates its contact, and returns its URL. */
    openAccount: (email: string | undefined) =>
      answered(z.string(), async () => {
        const contact = email === undefined ? {} : { contact: [`mailto:${email}`] };
        // Without a contact, this checks that the account exists.
        if (accountUrl !== null) await client.updateAccount(contact);
        else await createAccount(client, contact);
        return client.getAccountUrl();
      }),
    /** `replaces` is the id of the certificate that this one replaces (RFC 9773, 5). */
    createOrder: (host: string, replaces: string | null) =>
      answered(orderSchema, () => {
        const order = { identifiers: [{ type: 'dns', value: host }] };
        return client.createOrder(replaces === null ? order : Object.assign(order, { replaces }));
      }),
    readOrder: (url: string) => answered(orderSchema, () => client.getOrder(asComplete({ url }))),
    readAuthorizations: (order: AcmeOrder) =>
      answered(z.array(authorizationSchema), () => client.getAuthorizations(asComplete(order))),
    /** Asks the authority to check the challenge. */
    answerChallenge: async (challenge: AcmeChallenge): Promise<void> => {
      await answered(z.unknown(), () => client.completeChallenge(asComplete(challenge)));
    },
    keyAuthorization: (challenge: AcmeChallenge) =>
      answered(z.string(), () => client.getChallengeKeyAuthorization(asComplete(challenge))),
    /** `key` is the key of the certificate, PEM. */
    finalize: (order: AcmeOrder, { host, key }: { host: string; key: string }) =>
      answered(orderSchema, async () => {
        const [, csr] = await crypto.createCsr({ altNames: [host] }, key);
        return client.finalizeOrder(asComplete(order), csr);
      }),
    /** Returns the chain, PEM, our certificate first. */
    downloadChain: (order: AcmeOrder) =>
      answered(z.string(), () => client.getCertificate(asComplete(order))),
    /** Returns when the authority recommends the renewal (RFC 9773, 4.2). */
    readRenewalInfo: (url: string, certificateId: string) =>
      exchange(async () => {
        const answer = await get(`${url.replace(/\/$/, '')}/${certificateId}`).catch(asProblem);
        const { start, end } = read(renewalInfoSchema, answer.data).suggestedWindow;
        return { startUs: start, endUs: end, retryAfterMs: retryAfterOf(answer) };
      }),
  };
}

async function createAccount(client: Client, contact: { contact?: string[] }): Promise<void> {
  await client
    .createAccount({ termsOfServiceAgreed: true, ...contact })
    .catch((problem: unknown) => {
      // acme-client updates an existing account with its own data, which some authorities refuse.
      try {
        client.getAccountUrl();
      } catch {
        throw problem;
      }
    });
}

/** Creates a private key, PEM, P-256: keys that are served together must have the same type. */
export async function createKey(): Promise<string> {
  return (await crypto.createPrivateEcdsaKey('P-256')).toString();
}

/** Creates the certificate that answers a tls-alpn-01 challenge (RFC 8737), PEM. */
export async function createAlpnKeyPair(
  host: string,
  keyAuthorization: string,
): Promise<{ key: string; cert: string }> {
  const authorization = { identifier: { type: 'dns', value: host } };
  const [key, cert] = await crypto.createAlpnCertificate(
    asComplete(authorization),
    keyAuthorization,
    await createKey(),
  );
  return { key: key.toString(), cert: cert.toString() };
}

/** Returns the staging directory, where orders do not count; null if none is known. */
export function stagingOf(directoryUrl: string): string | null {
  const known = Object.values(knownDirectories).find(
    ({ production }) => production === directoryUrl,
  );
  return known !== undefined && 'staging' in known ? known.staging : null;
}

/** Casts a partial record: acme-client's types require more fields than it reads. */
function asComplete<Whole>(part: object): Whole {
  return part as Whole;
}

function read<Value>(schema: z.ZodType<Value>, answer: unknown): Value {
  const result = schema.safeParse(answer);
  if (result.success) return result.data;
  const fields = result.error.issues.map(({ path }) => path.join('.') || 'the answer');
  throw new AcmeProblem('malformedAnswer', `invalid by RFC 8555: ${fields.join(', ')}`);
}

/** Throws `malformedAnswer` for a refused directory: the URL is not that of an authority. */
function aboutTheDirectory(problem: unknown): never {
  if (!isAcmeProblem(problem) || isTransient(problem)) throw problem;
  throw new AcmeProblem('malformedAnswer', problem.detail);
}

/** Throws an error of acme-client as AcmeProblem; such errors have the authority's text but no type. */
function asProblem(error: unknown): never {
  if (error instanceof AcmeProblem) throw error;
  // acme-client throws these for incomplete answers.
  if (error instanceof TypeError) throw new AcmeProblem('malformedAnswer', 'incomplete answer');
  const detail = errorText(error);
  throw new AcmeProblem('other', detail || 'no reason given');
}

/** Returns the problem of a failed challenge or order. */
export function problemOf(problem: z.infer<typeof problemSchema> | undefined): AcmeProblem {
  return new AcmeProblem(problemType(problem?.type), problem?.detail ?? 'no reason given');
}

const requestTimeoutMs = 30_000;
/** Maximum requests of one call: enough even if most nonces are refused. acme-client can loop. */
const requestsMax = 100;
const answerBytesMax = 2 ** 20;
/** Maximum delay that an authority can request. */
const retryAfterMsMax = 7 * 24 * 3_600_000;

interface ExchangeContext {
  agent: Agent | undefined;
  signal: AbortSignal;
  timeoutMs: number;
  requestsLeft: number;
}

/** Settings per authority, as acme-client has one HTTP client for the whole process. */
const contexts = new AsyncLocalStorage<ExchangeContext>();

/** Runs calls of acme-client with the settings of one authority. */
function createExchange(settings: AuthoritySettings) {
  const { extraCaPem, signal, requestTimeoutMs: timeoutMs = requestTimeoutMs } = settings;
  acmeAxios.defaults.adapter = send;
  // Its own retries wait as long as the authority requests, even hours. Ours are scheduled and saved.
  Object.assign(acmeAxios.defaults, { acmeSettings: { retryMaxAttempts: 0 } });
  const agent =
    extraCaPem === undefined
      ? undefined
      : new Agent({ secureContext: contextTrusting([extraCaPem]) });
  return <Value>(calls: () => Promise<Value>): Promise<Value> =>
    contexts.run({ agent, signal, timeoutMs, requestsLeft: requestsMax }, calls);
}

/** Throws AcmeProblem for every refusal except a bad nonce, which acme-client retries with a new one. */
async function send(config: InternalAxiosRequestConfig): Promise<AxiosResponse> {
  const context = contexts.getStore();
  if (context === undefined) throw new Error('acme-client was called outside of an exchange.');
  const origin = URL.parse(config.url ?? '')?.origin ?? 'the authority';
  if (context.requestsLeft === 0) {
    throw new AcmeProblem('malformedAnswer', `too many requests to ${origin} in one call`);
  }
  context.requestsLeft -= 1;
  const { agent, signal } = context;
  // Not the timeout of axios, which restarts with each byte.
  const timeout = AbortSignal.timeout(context.timeoutMs);
  const response = await axios
    .getAdapter('http')({
      ...config,
      signal: AbortSignal.any([signal, timeout]),
      maxContentLength: answerBytesMax,
      ...(agent === undefined ? {} : { httpsAgent: agent }),
    })
    .catch((error: unknown) => {
      if (error instanceof AxiosError && error.response !== undefined) return error.response;
      const reason = timeout.aborted ? 'it did not answer in time' : networkFault(error);
      throw new AcmeProblem('unreachable', `${origin}: ${reason}`);
    });
  if (response.status >= 400) refuse(response, origin);
  return response;
}

function refuse(response: AxiosResponse, origin: string): void {
  const { status, data } = response;
  // Axios parses JSON after the adapter.
  const body: unknown = typeof data === 'string' ? jsonOf(data) : data;
  const problem = problemSchema.safeParse(body).data;
  const type = problemType(problem?.type);
  if (type === 'badNonce') return;
  const details = [problem, ...(problem?.subproblems ?? [])].flatMap((one) => one?.detail ?? []);
  const detail = details.join(' ') || `${origin} answered with status ${status}`;
  const kind = type === 'other' ? kindOf(status) : type;
  throw new AcmeProblem(kind, detail, retryAfterOf(response));
}

function kindOf(status: number): string {
  if (status === 429) return 'rateLimited';
  return status >= 500 ? 'serverInternal' : 'other';
}

function retryAfterOf({ headers }: AxiosResponse): number | null {
  const askedMs = retryAfterMs({ get: (name) => headers[name] ?? null });
  return askedMs === null || askedMs === 0 ? null : Math.min(askedMs, retryAfterMsMax);
}

/** Opens an authority for requests without an account. */
export async function openAuthority(context: {
  settings: AcmeSettings;
  signal: AbortSignal;
}): Promise<Authority> {
  const { settings, signal } = context;
  const accountKey = await createKey();
  return createAuthority({ ...settings, eab: undefined, signal, accountKey, accountUrl: null });
}

/**
 * Opens the account on disk, or a new one. Its key is saved before the authority receives it, so that an interruption
 * creates no second account. Rejects with AcmeProblem, `configuration` or `unavailable`.
 */
export async function openAuthorityAccount(context: {
  folder: Pick<AcmeFolder, 'readAccount' | 'writeAccount'>;
  settings: AcmeSettings;
  signal: AbortSignal;
}): Promise<{ authority: Authority; directory: Directory }> {
  const { folder, settings, signal } = context;
  const { directoryUrl, eab, email } = settings;
  let saved = await folder.readAccount(directoryUrl);
  if (saved === null) {
    saved = { directoryUrl, key: await createKey(), url: null };
    await folder.writeAccount(saved);
  }
  const { key } = saved;
  const open = (accountUrl: string | null) =>
    createAuthority({ ...settings, signal, accountKey: key, accountUrl });
  const authority = open(saved.url);
  const directory = await authority.readDirectory();
  if (saved.url === null && eab === undefined && directory.meta?.externalAccountRequired === true) {
    throw new AcmeProblem('externalAccountRequired', 'stated in its directory');
  }
  const url = await authority
    .openAccount(email)
    .catch((problem: unknown) => {
      // Authorities delete accounts; those for tests do so at each start. The same key creates a new one.
      const isDeleted =
        isAcmeProblem(problem, 'accountDoesNotExist') || isAcmeProblem(problem, 'malformed');
      if (saved.url === null || !isDeleted) throw problem;
      return open(null).openAccount(email);
    })
    .catch((problem: unknown) => {
      // `unauthorized` has different meanings for accounts and challenges.
      if (!isAcmeProblem(problem, 'unauthorized')) throw problem;
      throw new AcmeProblem('accountRefused', problem.detail, problem.retryAfterMs);
    });
  if (url !== saved.url) await folder.writeAccount({ directoryUrl, key, url });
  return { authority: url === saved.url ? authority : open(url), directory };
}
