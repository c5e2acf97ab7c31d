/**
 * How acme-client's requests are sent. It knows one HTTP client for the whole process, so what
 * differs between authorities (roots, timeouts, the end of the program) is kept in one place: here.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Agent } from 'node:https';
import { axios as acmeAxios } from 'acme-client';
import axios, { AxiosError, type AxiosResponse, type InternalAxiosRequestConfig } from 'axios';
import { z } from 'zod';
import { networkFault } from '../../http/network-fault.ts';
import { contextTrusting } from '../../http/trusted-authorities.ts';
import { AcmeProblem, problemType } from './acme-problem.ts';

export interface ExchangeSettings {
  /** PEM of roots that are trusted besides the usual ones. */
  extraCaPem: string | undefined;
  /** Ends what is under way. */
  signal: AbortSignal;
  /** For an answer to be there in full; half a minute unless told. */
  requestTimeoutMs?: number;
}

/** Runs calls of acme-client with the settings of one authority. */
export type Exchange = <Value>(calls: () => Promise<Value>) => Promise<Value>;

const requestTimeoutMs = 30_000;
/** Of one call: far more than it needs, with most nonces refused. acme-client can go round in circles. */
const requestsMax = 100;
const answerBytesMax = 2 ** 20;
/** An authority that asks for more is asked again after this all the same. */
const retryAfterMsMax = 7 * 24 * 3_600_000;

interface Context {
  agent: Agent | undefined;
  signal: AbortSignal;
  timeoutMs: number;
  requestsLeft: number;
}
const contexts = new AsyncLocalStorage<Context>();

export function createExchange(settings: ExchangeSettings): Exchange {
  const { extraCaPem, signal, requestTimeoutMs: timeoutMs = requestTimeoutMs } = settings;
  acmeAxios.defaults.adapter = send;
  // Its own retries wait as long as the authority says, be it hours; ours are planned and kept.
  Object.assign(acmeAxios.defaults, { acmeSettings: { retryMaxAttempts: 0 } });
  const agent =
    extraCaPem === undefined
      ? undefined
      : new Agent({ secureContext: contextTrusting([extraCaPem]) });
  return (calls) => contexts.run({ agent, signal, timeoutMs, requestsLeft: requestsMax }, calls);
}

/** Throws AcmeProblem for every refusal but a bad nonce, which acme-client answers with a new one. */
async function send(config: InternalAxiosRequestConfig): Promise<AxiosResponse> {
  const context = contexts.getStore();
  if (context === undefined) throw new Error('A call of acme-client outside of an exchange.');
  if (context.requestsLeft === 0) {
    throw new AcmeProblem('malformedAnswer', `${originOf(config)} has led round in circles`);
  }
  context.requestsLeft -= 1;
  const { agent, signal } = context;
  // Not axios' own timeout, which begins anew with each byte.
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
      throw new AcmeProblem('unreachable', `${originOf(config)}: ${reason}`);
    });
  if (response.status >= 400) refuse(response, config);
  return response;
}

const problemSchema = z.looseObject({
  type: z.string().optional(),
  detail: z.string().optional(),
  subproblems: z.array(z.looseObject({ detail: z.string().optional() })).optional(),
});

function refuse({ status, data, headers }: AxiosResponse, config: InternalAxiosRequestConfig) {
  const problem = problemSchema.safeParse(parsed(data)).data;
  const type = problemType(problem?.type);
  if (type === 'badNonce') return;
  const details = [problem, ...(problem?.subproblems ?? [])].flatMap((one) => one?.detail ?? []);
  const detail = details.join(' ') || `${originOf(config)} answered with status ${status}`;
  const kind = type === 'other' ? kindOf(status) : type;
  throw new AcmeProblem(kind, detail, retryAfterMs(headers['retry-after'], headers.date));
}

function kindOf(status: number): string {
  if (status === 429) return 'rateLimited';
  return status >= 500 ? 'serverInternal' : 'other';
}

/** Axios parses JSON after the adapter has handed the answer over. */
function parsed(data: unknown): unknown {
  try {
    return typeof data === 'string' ? JSON.parse(data) : data;
  } catch {
    return undefined;
  }
}

function originOf({ url = '' }: InternalAxiosRequestConfig): string {
  return URL.parse(url)?.origin ?? 'the authority';
}

/** Seconds, or a date (RFC 9110, 10.2.3), which is measured by the authority's own clock. */
export function retryAfterMs(header: unknown, date: unknown): number | null {
  if (typeof header !== 'string') return null;
  const milliseconds = /^\d+$/.test(header)
    ? Number(header) * 1000
    : Date.parse(header) - Date.parse(String(date));
  return milliseconds > 0 ? Math.min(milliseconds, retryAfterMsMax) : null;
}
