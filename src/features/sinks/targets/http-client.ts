/** Requests to web services of the user: their login, their answers, and no redirects. */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { Readable } from 'node:stream';
import { z } from 'zod';
import {
  answerBytesMax,
  networkFault,
  reachHost,
  readBeginning,
  retryAfterMs,
  UnusableAnswer,
} from '../../../core/http/bounded-fetch.ts';
import { hostOf, isLoopbackHost } from '../../../core/http/network-address.ts';
import { foreignText, hintCharactersMax, hintOf } from '../../../core/http/service-error.ts';
import { contextTrusting } from '../../../core/http/tls-settings.ts';
import { type Evaluation, ok } from '../../../core/terms/evaluation.ts';
import {
  certificatesForm,
  type FileForm,
  nameField,
  type ReadFile,
  type TargetAnswer,
  unavailable,
  unusable,
} from '../target.ts';

const urlForm = 'must be an https URL, such as https://hooks.example.org/earshot';
/** Without credentials; otherwise unchanged. Which hosts are reached without TLS depends on `allowHttpTo`. */
export const serviceUrl = z.string(urlForm).transform((text, context) => {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    context.addIssue(urlForm);
    return z.NEVER;
  }
  if (url.username + url.password + url.hash === '') return url.href;
  context.addIssue('must not contain a user name, password or #');
  return z.NEVER;
});

/** Headers that earshot sets, or that change the meaning of a request. */
const ownHeaders =
  /^(?:connection|content-.*|host|te|trailer|transfer-encoding|upgrade|webhook-.*|ce-.*)$/i;
const headerForm = "must be the name of a header that earshot does not set, such as 'x-api-key'";
const headerName = z
  .string()
  .regex(/^[\w!#$%&'*+.^`|~-]+$/, headerForm)
  .refine((name) => !ownHeaders.test(name), headerForm);

const hostExample = "'broker.default.svc.cluster.local'";
const hostForm = `must be the name of a host without scheme and port, such as ${hostExample}`;

/** Returns a host as URLs have it; null for another text. */
function normalHost(host: string): string | null {
  const written = isIP(host) === 6 ? `[${host}]` : host;
  return /^\[[\da-f:.]+\]$|^[^:/@?#[\]]+$/i.test(written)
    ? (URL.parse(`http://${written}`)?.hostname ?? null)
    : null;
}

/** Fields of every kind that sends requests. */
export const httpFields = {
  /** File with the token for `Authorization: Bearer`, read for each request; must not be readable by everyone. */
  bearerFile: nameField('hook-token').optional(),
  /** Further headers: the file of each value, read in the same way. */
  headerFiles: z
    .record(
      headerName,
      nameField('api-key'),
      "must be an object, such as { 'x-api-key': 'api-key' }",
    )
    .optional(),
  /** PEM file with a certificate authority to trust, in addition to the public ones. */
  ca: nameField('authority.pem').optional(),
  /** Hosts that may be reached without TLS, such as the broker in a cluster; this machine always may. */
  allowHttpTo: z
    .array(
      z.string(hostForm).refine((host) => normalHost(host) !== null, hostForm),
      `must be a list, such as [${hostExample}]`,
    )
    .optional(),
};

type HttpFields = { [Name in keyof typeof httpFields]?: z.output<(typeof httpFields)[Name]> };

/** Returns the faults in the combination of fields; the URL is undefined for a sink of another kind. */
export function httpFaults(sink: HttpFields, url: string | undefined): string[] {
  if (url === undefined) {
    const fields = Object.keys(httpFields).filter((name) => name in sink) as (keyof HttpFields)[];
    return fields
      .filter((name) => sink[name] !== undefined)
      .map((name) => `${name} requires webhook or stac; other kinds have settings of their own`);
  }
  const parsed = new URL(url);
  const { hostname } = parsed;
  const isPlain = parsed.protocol === 'http:';
  const allowed = sink.allowHttpTo?.map(normalHost) ?? [];
  const faults: string[] = [];
  if (isPlain && !isLoopbackHost(hostOf(parsed)) && !allowed.includes(hostname)) {
    const hosts = 'this machine and the hosts in allowHttpTo';
    faults.push(`http is allowed only for ${hosts}, which does not name ${hostname}: use https`);
  }
  if (sink.ca !== undefined && isPlain) faults.push('ca requires an https URL');
  const names = Object.keys(sink.headerFiles ?? {});
  if (sink.bearerFile !== undefined && names.some((name) => /^authorization$/i.test(name))) {
    faults.push('bearerFile and the header authorization must not be set together');
  }
  return faults;
}

const headerValueForm: FileForm = {
  isSecret: true,
  faultOf: (value) =>
    /^[!-~](?:[ -~]*[!-~])?$/.test(value) ? null : 'the file must contain one line of ASCII.',
};

/** Settings of a service, with the content of the files. */
export interface HttpSettings {
  url: string;
  ca: string | null;
  /** Reads the headers with the login: tokens expire. Null if a file cannot be used. */
  login: () => Record<string, string> | null;
}

export function httpSettings(url: string, sink: HttpFields, readFile: ReadFile): HttpSettings {
  const { bearerFile, headerFiles = {}, ca } = sink;
  const login = () => {
    const bearer = readFile('bearerFile', bearerFile, headerValueForm);
    const headers = Object.entries(headerFiles).map(
      ([name, file]) => [name, readFile(`headerFiles.${name}`, file, headerValueForm)] as const,
    );
    if (bearerFile !== undefined) headers.push(['authorization', bearer && `Bearer ${bearer}`]);
    return headers.every((one): one is readonly [string, string] => one[1] !== null)
      ? Object.fromEntries(headers)
      : null;
  };
  login();
  return { url, ca: readFile('ca', ca, certificatesForm), login };
}

/** Statuses after which the same request may succeed later, in addition to 500 and above. */
const retryableStatuses = new Set([408, 425, 429]);

/** Statuses caused by the URL or the login rather than the item, in addition to all 3xx. */
const misconfiguredStatuses = new Set([401, 403, 404, 405, 410]);

interface HttpRequest {
  method: string;
  /** By default that of the settings. */
  url?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** Answer of a service; the status is 0 without one. */
interface HttpAnswer {
  status: number;
  /** Result of a delivery for this status. */
  answer: TargetAnswer;
  /** Beginning of the body of a failure; of a success only if it was asked for. */
  text: string;
}

/** Opens a client; it connects with the first request. `secrets` are removed from answers. */
export function createHttpClient(
  { url: defaultUrl, ca, login }: HttpSettings,
  secrets: readonly string[] = [],
) {
  let client: Promise<Client> | undefined;
  return {
    /** Never rejects. Does not follow redirects, so that items and secrets are only sent to the configured URL. */
    send: async (
      { url = defaultUrl, body = '', headers, method }: HttpRequest,
      signal: AbortSignal,
      { readsBody = false } = {},
    ): Promise<HttpAnswer> => {
      const own = login();
      if (own === null) {
        const reason = 'the file of its login cannot be used: `earshot doctor` shows the reason';
        return { status: 0, text: '', answer: { kind: 'misconfigured', reason } };
      }
      client ??= loadClient(url, ca);
      const length = { 'content-length': String(Buffer.byteLength(body)) };
      const all = { 'user-agent': 'earshot', ...length, ...headers, ...own };
      try {
        const response = await request(await client, { url, method, headers: all, body, signal });
        // Also without the scheme, such as `Bearer`.
        const sent = Object.values(own).flatMap((value) => [value, value.replace(/^\S+ /, '')]);
        return await answerOf(response, [...secrets, ...sent], readsBody);
      } catch (error) {
        const reason = networkFault(signal.aborted ? signal.reason : error);
        return { status: 0, text: '', answer: unavailable(reason) };
      }
    },
    close: async () => (await client)?.agent?.destroy(),
  };
}

/** Checks for the doctor that the host can be reached. */
export async function checkHost(
  { url, ca, login }: HttpSettings,
  signal: AbortSignal,
  remark = '',
): Promise<Evaluation> {
  const parsed = new URL(url);
  const { host } = parsed;
  const fault = await reachHost(url, { ca, signal });
  if (fault !== null) return unusable(host, fault);
  const isOpen = parsed.protocol === 'http:' && !isLoopbackHost(hostOf(parsed));
  const secret = Object.keys(login() ?? {}).length > 0 ? 'The login and the' : 'The';
  return ok(
    `${host} is reachable.${isOpen ? ` ${secret} notifications are sent unencrypted.` : ''}${remark}`,
  );
}

/** Time to read the body of a success; a connection is closed that keeps it open for longer. */
const successBodyMs = 1_000;

/** Reads the body of a failure; that of a success only in the background, so that its connection can be reused. */
async function answerOf(
  response: IncomingMessage,
  secrets: readonly string[],
  readsBody: boolean,
): Promise<HttpAnswer> {
  const { statusCode: status = 0, headers } = response;
  const body = Readable.toWeb(response) as ReadableStream<Uint8Array>;
  const isRead = readsBody || status >= 300;
  // Nothing waits for the body of a success, so it has a limit of its own.
  const limit = readsBody
    ? { bytesMax: answerBytesMax }
    : isRead
      ? {}
      : { timeoutMs: successBodyMs };
  const beginning = readBeginning(body, limit);
  if (status < 200 || status > 599) {
    throw new UnusableAnswer(`it answered with an invalid status (${status})`);
  }
  const text = isRead ? new TextDecoder().decode(Buffer.concat(await beginning)) : '';
  if (status < 300) return { status, text, answer: { kind: 'acknowledged' } };
  if (status < 400) {
    const reason = `it answered ${status}, redirects are not followed: set the final URL`;
    return { status, text, answer: { kind: 'misconfigured', reason } };
  }
  const detail = foreignText(hintOf(text), { secrets, charactersMax: hintCharactersMax });
  const reason = `it answered ${status}${detail === '' ? '' : `: ${detail}`}`;
  if (misconfiguredStatuses.has(status)) {
    return { status, text, answer: { kind: 'misconfigured', reason } };
  }
  if (status >= 500 || retryableStatuses.has(status)) {
    const get = (name: string) => String(headers[name] ?? '');
    const retry = retryAfterMs({ get });
    return { status, text, answer: { kind: 'unavailable', reason, retryAfterMs: retry } };
  }
  return { status, text, answer: { kind: 'refused', reason } };
}

type Client = Awaited<ReturnType<typeof loadClient>>;

/**
 * Loads the client with the first request: an import of node:http takes 20 ms, because it also loads Node's fetch. Trusts
 * the certificate authority in `ca`, the public ones and the system's.
 */
async function loadClient(url: string, ca: string | null) {
  if (!url.startsWith('https:')) {
    const { request: send } = await import('node:http');
    return { send, agent: undefined };
  }
  const { Agent, request: send } = await import('node:https');
  const agent = new Agent({
    keepAlive: true,
    secureContext: contextTrusting(ca === null ? [] : [ca]),
    // Explicit, because an environment variable could otherwise disable the checks.
    rejectUnauthorized: true,
  });
  return { send, agent };
}

/** Sends a request. The signal also ends the response body. */
function request(
  { send, agent }: Client,
  { url, body, ...options }: Required<HttpRequest> & { signal: AbortSignal },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = send(url, { ...options, agent });
    sent.on('response', resolve);
    sent.on('error', reject);
    sent.on('close', () =>
      reject(new UnusableAnswer('it closed the connection without an answer')),
    );
    sent.end(body);
  });
}
