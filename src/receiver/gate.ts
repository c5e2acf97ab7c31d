/** Lets in who has the right credentials, and answers everybody else in one and the same way. */
import type { IncomingMessage } from 'node:http';
import { AppError } from '../domain/app-error.ts';
import type { Logger } from '../domain/ports.ts';
import { probeProofHeader } from '../http/probe-proof.ts';
import { problemResponse } from '../http/problem.ts';
import type { CredentialCheck } from './basic-auth.ts';
import { createClientAddress } from './client-address.ts';
import { createFailureLimiter, failuresPerMinuteMax } from './failure-limiter.ts';
import { createLoginLog } from './login-log.ts';

export interface GateOptions {
  checkCredentials: CredentialCheck;
  log: Logger;
  nowUs: () => number;
  newRequestId: () => string;
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is believed; none unless told. */
  trustedProxies?: readonly string[];
  /** Whether the value of `probeProofHeader` is a proof; no value is, by default. */
  isProbeProof?: (value: string | undefined) => boolean;
}

/** After so many lines a minute about one address, the next one is that it gets 429. */
const linesPerAddressMax = 10;

/** Who was let in, or the answer for somebody who was not. */
export type Passage = { username: string; refusal?: never } | { refusal: Response };

/**
 * Answers a request without the right credentials; one that has them passes. A probe of our own gets the same
 * answer, but is no failed login: it is neither counted nor logged as one.
 */
export function createGate(
  options: GateOptions,
  onRefusal: () => void,
): (incoming: IncomingMessage) => Passage {
  const { checkCredentials, log, nowUs, newRequestId, trustedProxies = [] } = options;
  const { isProbeProof = () => false } = options;
  const limiter = createFailureLimiter(nowUs);
  const clientAddress = createClientAddress(trustedProxies);
  const warn = createLoginLog(log, nowUs);
  return (incoming) => {
    const username = checkCredentials(incoming.headers.authorization);
    if (username !== null) return { username };
    const requestId = newRequestId();
    const address = clientAddress(incoming);
    if (isOwnProbe(incoming, isProbeProof)) {
      log.debug({ requestId, address }, 'probe of earshot doctor without credentials');
      return { refusal: unauthorized(requestId) };
    }
    const failures = limiter.note(address);
    onRefusal();
    if (failures <= failuresPerMinuteMax) {
      if (failures <= linesPerAddressMax) warn({ requestId, address }, 'wrong or no credentials');
      return { refusal: unauthorized(requestId) };
    }
    if (failures === failuresPerMinuteMax + 1) {
      warn({ requestId, address }, 'too many failed logins; this address gets 429 for a minute');
    }
    const response = problemResponse(
      new AppError('too_many', 'Too many failed logins from this address.'),
      requestId,
    );
    response.headers.set('Retry-After', '60');
    return { refusal: response };
  };
}

/** Probes are GET requests without a login. */
function isOwnProbe(
  { method, headers }: IncomingMessage,
  isProbeProof: (value: string | undefined) => boolean,
): boolean {
  if (method !== 'GET' || headers.authorization !== undefined) return false;
  const value = headers[probeProofHeader];
  return isProbeProof(typeof value === 'string' ? value : undefined);
}

function unauthorized(requestId: string): Response {
  const response = problemResponse(
    new AppError('unauthorized', 'The right user name and password are needed.'),
    requestId,
  );
  response.headers.set('WWW-Authenticate', 'Basic realm="earshot", charset="UTF-8"');
  return response;
}
