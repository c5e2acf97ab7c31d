/** One certificate authority, called by ACME (RFC 8555) through acme-client, and our account there. */
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
  /** The one name in the certificate. */
  host: string;
  challenge: 'http-01' | 'tls-alpn-01';
  email: string | undefined;
  /** PEM of roots that are trusted for the authority's own HTTPS, in addition to the usual ones. */
  extraCaPem: string | undefined;
  eab: { keyId: string; hmacKey: string } | undefined;
}

interface AuthoritySettings extends Pick<AcmeSettings, 'directoryUrl' | 'extraCaPem' | 'eab'> {
  /** PEM; the account is the one of this key. */
  accountKey: string;
  /** Null before the account was created, or found. */
  accountUrl: string | null;
  /** Ends the calls in progress. */
  signal: AbortSignal;
  /** For a complete answer. */
  requestTimeoutMs?: number;
}

/** The parts of a directory that are used (RFC 8555, 7.1.1; RFC 9773, 3). */
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

/** An order as far as it is read (7.1.3). */
const orderSchema = z.looseObject({
  url: z.string(),
  status: z.enum(['pending', 'ready', 'processing', 'valid', 'invalid']),
  authorizations: z.array(z.string()),
  finalize: z.string(),
  certificate: z.string().optional(),
  error: problemSchema.optional(),
});
export type AcmeOrder = z.infer<typeof orderSchema>;

/** One way to prove that the name is ours (7.1.5). */
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

/** RFC 3339, to microseconds; a year too far off to be counted in them is an error. */
const timeUs = z.iso
  .datetime({ offset: true })
  .transform((text) => Date.parse(text) * 1000)
  .pipe(z.int());

const renewalInfoSchema = z.looseObject({
  suggestedWindow: z.looseObject({ start: timeUs, end: timeUs }),
});

/** Where nonces are refused often, acme-client's own limit of five would end one order in ten. */
const nonceRetriesMax = 20;

export type Authority = ReturnType<typeof createAuthority>;

/** Each call rejects with AcmeProblem. None is repeated here, but for nonces that are refused. */
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
    /** Creates the account of the key, or finds it; its URL. The contact is brought up to date. */
    openAccount: (email: string | undefined) =>
      answered(z.string(), async () => {
        const contact = email === undefined ? {} : { contact: [`mailto:${email}`] };
        // Without a contact, this checks that the account exists.
        if (accountUrl !== null) await client.updateAccount(contact);
        else await createAccount(client, contact);
        return client.getAccountUrl();
      }),
    /** `replaces` is the id of the certificate that this one follows (RFC 9773, 5). */
    createOrder: (host: string, replaces: string | null) =>
      answered(orderSchema, () => {
        const order = { identifiers: [{ type: 'dns', value: host }] };
        return client.createOrder(replaces === null ? order : Object.assign(order, { replaces }));
      }),
    readOrder: (url: string) => answered(orderSchema, () => client.getOrder(stub({ url }))),
    readAuthorizations: (order: AcmeOrder) =>
      answered(z.array(authorizationSchema), () => client.getAuthorizations(stub(order))),
    /** Asks the authority to check the challenge. */
    answerChallenge: async (challenge: AcmeChallenge): Promise<void> => {
      await answered(z.unknown(), () => client.completeChallenge(stub(challenge)));
    },
    keyAuthorization: (challenge: AcmeChallenge) =>
      answered(z.string(), () => client.getChallengeKeyAuthorization(stub(challenge))),
    /** `key` is the one that the certificate is for, PEM. */
    finalize: (order: AcmeOrder, { host, key }: { host: string; key: string }) =>
      answered(orderSchema, async () => {
        const [, csr] = await crypto.createCsr({ altNames: [host] }, key);
        return client.finalizeOrder(stub(order), csr);
      }),
    /** The chain, PEM, ours first. */
    downloadChain: (order: AcmeOrder) =>
      answered(z.string(), () => client.getCertificate(stub(order))),
    /** When the authority wants this certificate renewed (RFC 9773, 4.2). */
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
      // One that existed already is updated with what it has, which some authorities refuse.
      try {
        client.getAccountUrl();
      } catch {
        throw problem;
      }
    });
}

/** A new private key, PEM, P-256: keys that are served together must be of one kind. */
export async function createKey(): Promise<string> {
  return (await crypto.createPrivateEcdsaKey('P-256')).toString();
}

/** The certificate that answers a tls-alpn-01 challenge (RFC 8737), PEM. */
export async function createAlpnKeyPair(
  host: string,
  keyAuthorization: string,
): Promise<{ key: string; cert: string }> {
  const authorization = { identifier: { type: 'dns', value: host } };
  const [key, cert] = await crypto.createAlpnCertificate(
    stub(authorization),
    keyAuthorization,
    await createKey(),
  );
  return { key: key.toString(), cert: cert.toString() };
}

/** Where orders of this authority can be rehearsed without counting; null where none is known. */
export function stagingOf(directoryUrl: string): string | null {
  const known = Object.values(knownDirectories).find(
    ({ production }) => production === directoryUrl,
  );
  return known !== undefined && 'staging' in known ? known.staging : null;
}

/** acme-client's types ask for whole records, of which it reads what is there. */
function stub<Whole>(part: object): Whole {
  return part as Whole;
}

function read<Value>(schema: z.ZodType<Value>, answer: unknown): Value {
  const result = schema.safeParse(answer);
  if (result.success) return result.data;
  const places = result.error.issues.map(({ path }) => path.join('.') || 'the answer');
  throw new AcmeProblem('malformedAnswer', `not as RFC 8555 has it: ${places.join(', ')}`);
}

/** A refusal here is no answer of an authority: it is another page. */
function aboutTheDirectory(problem: unknown): never {
  if (!isAcmeProblem(problem) || isTransient(problem)) throw problem;
  throw new AcmeProblem('malformedAnswer', problem.detail);
}

/** Errors of acme-client itself carry the authority's text and no type. */
function asProblem(error: unknown): never {
  if (error instanceof AcmeProblem) throw error;
  // It stumbles over answers that lack what it continues with.
  if (error instanceof TypeError) throw new AcmeProblem('malformedAnswer', 'parts are missing');
  const detail = errorText(error);
  throw new AcmeProblem('other', detail || 'no reason was given');
}

/** Why a challenge, or an order, was not accepted. */
export function problemOf(problem: z.infer<typeof problemSchema> | undefined): AcmeProblem {
  return new AcmeProblem(problemType(problem?.type), problem?.detail ?? 'no reason was given');
}

const requestTimeoutMs = 30_000;
/** Maximum requests of one call: far more than it needs, with most nonces refused. acme-client can loop. */
const requestsMax = 100;
const answerBytesMax = 2 ** 20;
/** An authority that asks for a longer wait is asked again after this time. */
const retryAfterMsMax = 7 * 24 * 3_600_000;

interface ExchangeContext {
  agent: Agent | undefined;
  signal: AbortSignal;
  timeoutMs: number;
  requestsLeft: number;
}

/** acme-client has one HTTP client for the whole process: what differs between authorities is kept here. */
const contexts = new AsyncLocalStorage<ExchangeContext>();

/** Runs calls of acme-client with the settings of one authority. */
function createExchange(settings: AuthoritySettings) {
  const { extraCaPem, signal, requestTimeoutMs: timeoutMs = requestTimeoutMs } = settings;
  acmeAxios.defaults.adapter = send;
  // Its own retries wait as long as the authority says, be it hours; ours are planned and saved.
  Object.assign(acmeAxios.defaults, { acmeSettings: { retryMaxAttempts: 0 } });
  const agent =
    extraCaPem === undefined
      ? undefined
      : new Agent({ secureContext: contextTrusting([extraCaPem]) });
  return <Value>(calls: () => Promise<Value>): Promise<Value> =>
    contexts.run({ agent, signal, timeoutMs, requestsLeft: requestsMax }, calls);
}

/** Throws AcmeProblem for every refusal but a bad nonce, which acme-client answers with a new one. */
async function send(config: InternalAxiosRequestConfig): Promise<AxiosResponse> {
  const context = contexts.getStore();
  if (context === undefined) throw new Error('A call of acme-client outside of an exchange.');
  const origin = URL.parse(config.url ?? '')?.origin ?? 'the authority';
  if (context.requestsLeft === 0) {
    throw new AcmeProblem('malformedAnswer', `${origin} has led round in circles`);
  }
  context.requestsLeft -= 1;
  const { agent, signal } = context;
  // Not axios' own timeout, which starts again with each byte.
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

/** For the questions that need no account. */
export async function openAuthority(context: {
  settings: AcmeSettings;
  signal: AbortSignal;
}): Promise<Authority> {
  const { settings, signal } = context;
  const accountKey = await createKey();
  return createAuthority({ ...settings, eab: undefined, signal, accountKey, accountUrl: null });
}

/**
 * Opens the account: the one on disk, or a new one. The key is on disk before the authority receives it, so that an
 * interruption creates no second account. Rejects with AcmeProblem, `configuration` or `unavailable`.
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
    throw new AcmeProblem('externalAccountRequired', 'its directory says so');
  }
  const url = await authority
    .openAccount(email)
    .catch((problem: unknown) => {
      // Authorities drop accounts: test ones at each start. The same key creates a new account.
      const isDropped =
        isAcmeProblem(problem, 'accountDoesNotExist') || isAcmeProblem(problem, 'malformed');
      if (saved.url === null || !isDropped) throw problem;
      return open(null).openAccount(email);
    })
    .catch((problem: unknown) => {
      // `unauthorized` means something else of an account than of a challenge.
      if (!isAcmeProblem(problem, 'unauthorized')) throw problem;
      throw new AcmeProblem('accountRefused', problem.detail, problem.retryAfterMs);
    });
  if (url !== saved.url) await folder.writeAccount({ directoryUrl, key, url });
  return { authority: url === saved.url ? authority : open(url), directory };
}
