/**
 * Orders certificates from the stub authority: everything is real except the clock and the random
 * numbers.
 */

import { expect, onTestFinished, vi } from 'vitest';
import { type AppError, isAppError } from '../../src/domain/app-error.ts';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import type { AcmeSettings } from '../../src/tls/acme/authority.ts';
import { openAcmeContext } from '../../src/tls/acme/order.ts';
import { type RenewOptions, renew, startRenewalLoop } from '../../src/tls/acme/renew.ts';
import type { OwnCertificate } from '../../src/tls/acme/state.ts';
import {
  type Fault,
  type StubAuthority,
  type StubOptions,
  startStubAuthority,
} from './stub-authority.ts';
import { temporaryDirectory } from './temporary-directory.ts';

export const dayUs = 86_400_000_000;
/** Initial time of a test's clock. */
export const startUs = Date.UTC(2026, 4, 1, 12) * 1000;

export interface LogLine {
  level: string;
  fields: Record<string, unknown>;
  message: string;
}

export type OrderAtStub = Awaited<ReturnType<typeof orderAtStub>>;

export async function orderAtStub(
  stubOptions: Partial<StubOptions> = {},
  options: { dataDir?: string; settings?: Partial<AcmeSettings> } = {},
) {
  const clock = { us: startUs };
  const authority = await startStubAuthority({ nowMs: () => clock.us / 1000, ...stubOptions });
  return { clock, authority, ...openOrders(authority, clock, options) };
}

/** Opens the directory as a process does; opening it twice imitates a restart. */
export function openOrders(
  authority: StubAuthority,
  clock: { us: number },
  options: { dataDir?: string; settings?: Partial<AcmeSettings> } = {},
) {
  const dataDir = options.dataDir ?? temporaryDirectory();
  const stopper = new AbortController();
  let checks = 0;
  const log: LogLine[] = [];
  const to = (level: string) => (fields: object, message: string) => {
    log.push({ level, fields: { ...fields }, message });
  };
  const logger = { debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') };
  const context = openAcmeContext({
    settings: {
      directoryUrl: authority.directoryUrl,
      host: 'earshot.example.org',
      challenge: 'http-01',
      email: undefined,
      extraCaPem: authority.caPem,
      eab: undefined,
      ...options.settings,
    },
    dataDir,
    stagingUrl: null,
    openListener: async () => {
      checks += 1;
    },
    log: logger,
    nowUs: () => clock.us,
    random: () => 0,
    signal: stopper.signal,
  });
  const acquireLock = createAcquireLock(dataDir);
  const served: OwnCertificate[] = [];
  const onIssued = (certificate: OwnCertificate) => void served.push(certificate);
  return {
    context,
    dataDir,
    log,
    /** Certificates that were passed on to be served, in order. */
    served,
    /** Runs one check. */
    check: (when: RenewOptions['when'] = 'due') =>
      renew(context, { when, acquireLock, lockWaitMs: 0, onIssued }),
    /**
     * Resolves after `count` more checks of the loop. Each check begins with the listener state.
     */
    awaitChecks: async (count: number) => {
      const target = checks + count;
      await vi.waitFor(() => expect(checks).toBeGreaterThanOrEqual(target), { timeout: 10_000 });
    },
    /** Checks in a loop, as in a receiver; stopped when the test has finished. */
    startLoop: (current: OwnCertificate | null = null) => {
      const loopOptions = { context, current, acquireLock, onCertificate: onIssued, log: logger };
      const loop = startRenewalLoop({ ...loopOptions, checkEveryMs: 5 }, stopper);
      onTestFinished(() => loop.stop());
      return loop;
    },
  };
}

/** A refusal in the form of RFC 8555, section 6.7. */
export function refusal(
  type: string,
  { detail = 'because', status = 400, headers = {} }: Partial<Refusal> = {},
): Fault {
  return (answer) => ({
    status,
    headers: { ...answer.headers, 'content-type': 'application/problem+json', ...headers },
    body: { type: `urn:ietf:params:acme:error:${type}`, detail },
  });
}

interface Refusal {
  detail: string;
  status: number;
  headers: Record<string, string>;
}

/** An empty response whose header gives the reason. */
export function failure(status: number, headers: Record<string, string> = {}): Fault {
  return () => ({ status, headers, body: 'out of order' });
}

/** Returns the AppError that a call fails with. */
export async function failureOf(call: Promise<unknown>): Promise<AppError> {
  const error = await call.then(
    () => new Error('It did not fail.'),
    (problem: unknown) => problem,
  );
  if (isAppError(error)) return error;
  throw error;
}
