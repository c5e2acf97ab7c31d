/** One certificate authority, spoken to by ACME (RFC 8555) through acme-client. */

import { axios as acmeAxios, Client, crypto, directory as knownDirectories } from 'acme-client';
import { z } from 'zod';
import { errorText } from '../../domain/app-error.ts';
import { createExchange, type ExchangeSettings, retryAfterMs } from './acme-exchange.ts';
import { AcmeProblem, isAcmeProblem, isPassing, problemType } from './acme-problem.ts';

export interface AuthoritySettings extends ExchangeSettings {
  directoryUrl: string;
  /** PEM; the account is the one of this key. */
  accountKey: string;
  /** Null before the account was made, or found. */
  accountUrl: string | null;
  eab: { keyId: string; hmacKey: string } | undefined;
}

/** What of a directory is used (RFC 8555, 7.1.1; RFC 9773, 3). */
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

const problemSchema = z.looseObject({ type: z.string().optional(), detail: z.string().optional() });

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
export type AcmeChallenge = z.infer<typeof challengeSchema>;

const authorizationSchema = z.looseObject({
  status: z.string(),
  challenges: z.array(challengeSchema),
});
export type AcmeAuthorization = z.infer<typeof authorizationSchema>;

/** RFC 3339, to microseconds; a year so far off that they cannot be counted is none. */
const timeUs = z.iso
  .datetime({ offset: true })
  .transform((text) => Date.parse(text) * 1000)
  .pipe(z.int());

const renewalInfoSchema = z.looseObject({
  suggestedWindow: z.looseObject({ start: timeUs, end: timeUs }),
});

/** Each call rejects with AcmeProblem. None is repeated here, but for nonces that are refused. */
export interface Authority {
  readDirectory(): Promise<Directory>;
  /** Makes the account of the key, or finds it; its URL. The contact is brought up to date. */
  enterAccount(email: string | undefined): Promise<string>;
  /** `replaces` is the id of the certificate that this one follows (RFC 9773, 5). */
  createOrder(host: string, replaces: string | null): Promise<AcmeOrder>;
  readOrder(url: string): Promise<AcmeOrder>;
  readAuthorizations(order: AcmeOrder): Promise<AcmeAuthorization[]>;
  /** Tells the authority that the challenge may be looked at. */
  answerChallenge(challenge: AcmeChallenge): Promise<void>;
  keyAuthorization(challenge: AcmeChallenge): Promise<string>;
  /** `key` is the one the certificate is for, PEM. */
  finalize(order: AcmeOrder, options: { host: string; key: string }): Promise<AcmeOrder>;
  /** The chain, PEM, ours first. */
  downloadChain(order: AcmeOrder): Promise<string>;
  /** When the authority wants this certificate renewed (RFC 9773, 4.2). */
  readRenewalInfo(
    url: string,
    certificateId: string,
  ): Promise<{ startUs: number; endUs: number; retryAfterMs: number | null }>;
}

/** Where nonces are refused often, acme-client's own limit of five would end one order in ten. */
const nonceRetriesMax = 20;

export function createAuthority(settings: AuthoritySettings): Authority {
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
    enterAccount: (email) =>
      answered(z.string(), async () => {
        const contact = email === undefined ? {} : { contact: [`mailto:${email}`] };
        // Without a contact, a look whether the account is there.
        if (accountUrl !== null) await client.updateAccount(contact);
        else await createAccount(client, contact);
        return client.getAccountUrl();
      }),
    createOrder: (host, replaces) =>
      answered(orderSchema, () => {
        const order = { identifiers: [{ type: 'dns', value: host }] };
        return client.createOrder(replaces === null ? order : Object.assign(order, { replaces }));
      }),
    readOrder: (url) => answered(orderSchema, () => client.getOrder(stub({ url }))),
    readAuthorizations: (order) =>
      answered(z.array(authorizationSchema), () => client.getAuthorizations(stub(order))),
    answerChallenge: async (challenge) => {
      await answered(z.unknown(), () => client.completeChallenge(stub(challenge)));
    },
    keyAuthorization: (challenge) =>
      answered(z.string(), () => client.getChallengeKeyAuthorization(stub(challenge))),
    finalize: (order, { host, key }) =>
      answered(orderSchema, async () => {
        const [, csr] = await crypto.createCsr({ altNames: [host] }, key);
        return client.finalizeOrder(stub(order), csr);
      }),
    downloadChain: (order) => answered(z.string(), () => client.getCertificate(stub(order))),
    readRenewalInfo: (url, certificateId) =>
      exchange(async () => {
        const answer = await get(`${url.replace(/\/$/, '')}/${certificateId}`).catch(asProblem);
        const { suggestedWindow } = read(renewalInfoSchema, answer.data);
        const { 'retry-after': header, date } = answer.headers;
        return {
          startUs: suggestedWindow.start,
          endUs: suggestedWindow.end,
          retryAfterMs: retryAfterMs(header, date),
        };
      }),
  };
}

async function createAccount(client: Client, contact: { contact?: string[] }): Promise<void> {
  await client
    .createAccount({ termsOfServiceAgreed: true, ...contact })
    .catch((problem: unknown) => {
      // One that was there already is updated with what it has, which some authorities refuse.
      try {
        client.getAccountUrl();
      } catch {
        throw problem;
      }
    });
}

/** A new private key, PEM, P-256: of what is served beside each other, all must be of one kind. */
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

/** Where orders of this authority can be rehearsed without counting; null where nobody knows. */
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
  if (!isAcmeProblem(problem) || isPassing(problem)) throw problem;
  throw new AcmeProblem('malformedAnswer', problem.detail);
}

/** What acme-client throws itself carries the authority's words and no type. */
function asProblem(error: unknown): never {
  if (error instanceof AcmeProblem) throw error;
  // It stumbles over answers that lack what it goes on with.
  if (error instanceof TypeError) throw new AcmeProblem('malformedAnswer', 'parts are missing');
  const detail = errorText(error);
  throw new AcmeProblem('other', detail || 'no reason was given');
}

/** Why a challenge, or an order, was not accepted. */
export function problemOf(problem: z.infer<typeof problemSchema> | undefined): AcmeProblem {
  return new AcmeProblem(problemType(problem?.type), problem?.detail ?? 'no reason was given');
}
