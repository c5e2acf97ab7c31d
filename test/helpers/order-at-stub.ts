/** What orders certificates at the stub authority: everything real, but the clock and the chance. */

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
/** When the clock of a test begins. */
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

/** One program's view; a second one on the same folder is what a restart makes. */
export function openOrders(
  authority: StubAuthority,
  clock: { us: number },
  options: { dataDir?: string; settings?: Partial<AcmeSettings> } = {},
) {
  const dataDir = options.dataDir ?? temporaryDirectory();
  const stopper = new AbortController();
  let doors = 0;
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
      doors += 1;
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
    /** What was handed over to be served, in order. */
    served,
    /** One look. */
    look: (when: RenewOptions['when'] = 'due') =>
      renew(context, { when, acquireLock, lockWaitMs: 0, onIssued }),
    /** Resolves when a loop has looked so many times more; each look begins at the door. */
    looked: async (count: number) => {
      const enough = doors + count;
      await vi.waitFor(() => expect(doors).toBeGreaterThanOrEqual(enough), { timeout: 10_000 });
    },
    /** Looks again and again, as in a receiver; stopped when the test has finished. */
    startLoop: (current: OwnCertificate | null = null) => {
      const loopOptions = { context, current, acquireLock, onCertificate: onIssued, log: logger };
      const loop = startRenewalLoop({ ...loopOptions, checkEveryMs: 5 }, stopper);
      onTestFinished(() => loop.stop());
      return loop;
    },
  };
}

/** A refusal as RFC 8555 section 6.7 has it. */
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

/** An answer without a body that says why. */
export function failure(status: number, headers: Record<string, string> = {}): Fault {
  return () => ({ status, headers, body: 'out of order' });
}

/** The error of ours that a call ends with. */
export async function failureOf(call: Promise<unknown>): Promise<AppError> {
  const error = await call.then(
    () => new Error('It did not fail.'),
    (problem: unknown) => problem,
  );
  if (isAppError(error)) return error;
  throw error;
}
