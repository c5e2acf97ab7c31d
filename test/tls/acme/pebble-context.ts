/** ACME processes that order from Pebble: their files, clock and requests. */

import diagnosticsChannel from 'node:diagnostics_channel';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import { errorText } from '../../../src/domain/app-error.ts';
import { createAcquireLock } from '../../../src/store/engine/locks.ts';
import type { AcmeSettings } from '../../../src/tls/acme/authority.ts';
import { type ChallengeFolder, startChallengeListener } from '../../../src/tls/acme/challenge.ts';
import { openAcmeContext } from '../../../src/tls/acme/order.ts';
import { type RenewOptions, renew } from '../../../src/tls/acme/renew.ts';
import { type RenewalState, renewalStatesSchema } from '../../../src/tls/acme/state.ts';
import { type Pebble, startPebble } from '../../helpers/pebble.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

export const minuteUs = 60_000_000;
export const dayUs = 24 * 60 * minuteUs;

/** Default name of the certificate. */
export const host = 'earshot.example.org';

/** Creates a clock that only the test advances. */
export function createClock(startUs = Date.now() * 1000) {
  let atUs = startUs;
  return {
    nowUs: () => atUs,
    advance: (us: number) => {
      atUs += us;
    },
    set: (us: number) => {
      atUs = us;
    },
  };
}
export type Clock = ReturnType<typeof createClock>;

export interface LogLine {
  level: string;
  message: string;
  reason?: string;
}

/** Creates a log that records its lines. */
export function createLines() {
  const lines: LogLine[] = [];
  const note = (level: string) => (fields: object, message: string) => {
    const reason = 'reason' in fields ? String(fields.reason) : undefined;
    lines.push({ level, message, ...(reason === undefined ? {} : { reason }) });
  };
  const log = {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
  };
  return { lines, log };
}

export function settingsFor(pebble: Pebble, changed: Partial<AcmeSettings> = {}): AcmeSettings {
  return {
    directoryUrl: pebble.directoryUrl,
    host,
    challenge: 'http-01',
    email: undefined,
    extraCaPem: pebble.caPem,
    eab: undefined,
    ...changed,
  };
}

export interface ContextOptions {
  settings?: Partial<AcmeSettings>;
  stagingUrl?: string;
  dataDir?: string;
  clock?: Clock;
  random?: () => number;
  signal?: AbortSignal;
  /** Opens the port for challenges. By default all processes of a test share one listener. */
  openListener?: (challenges: ChallengeFolder) => Promise<void>;
}

/** Opens a simulated process that orders certificates; `dataDir` opens another one with the same folder. */
export function openProgram(pebble: Pebble, options: ContextOptions = {}) {
  const { dataDir = join(temporaryDirectory(), 'data'), clock = createClock() } = options;
  const { random = () => 0, signal = new AbortController().signal } = options;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const { lines, log } = createLines();
  const context = openAcmeContext({
    settings: settingsFor(pebble, options.settings),
    dataDir,
    stagingUrl: options.stagingUrl ?? null,
    openListener: options.openListener ?? ((challenges) => answerFrom(challenges, pebble)),
    log,
    nowUs: clock.nowUs,
    random,
    signal,
  });
  const acquireLock = createAcquireLock(dataDir);
  const issued: string[] = [];
  const check = (when: RenewOptions['when'] = 'due') =>
    renew(context, {
      when,
      acquireLock,
      lockWaitMs: 0,
      onIssued: ({ cert }) => void issued.push(cert),
    });
  const fail = (when: RenewOptions['when'] = 'due'): Promise<string> =>
    check(when).then(({ outcome }) => {
      throw new Error(`Expected a failure, but the outcome was ${outcome}.`);
    }, errorText);
  const path = (name: string) => join(dataDir, 'acme', name);
  /** Returns the content of a saved file. */
  const saved = (name: string) => JSON.parse(readFileSync(path(name), 'utf8'));
  const state = () => savedState(dataDir);
  return { context, dataDir, clock, lines, check, fail, issued, path, saved, state, acquireLock };
}
/** Returns the last saved state of the renewal; throws when there is none. */
export function savedState(dataDir: string): RenewalState {
  const text = readFileSync(join(dataDir, 'acme', 'renewal.json'), 'utf8');
  const [state] = renewalStatesSchema.parse(JSON.parse(text)).states;
  if (state === undefined) throw new Error('There is no state.');
  return state;
}

export type Program = ReturnType<typeof openProgram>;

const sharedListeners = new WeakMap<
  Pebble,
  { folders: Set<ChallengeFolder>; opening: Promise<unknown> }
>();

/** Answers the challenges of all processes of a test with one listener, since the authority uses one port. */
async function answerFrom(challenges: ChallengeFolder, pebble: Pebble): Promise<void> {
  let shared = sharedListeners.get(pebble);
  if (shared === undefined) {
    const folders = new Set<ChallengeFolder>();
    const answer = (token: string) =>
      [...folders].map((folder) => folder.answer(token)).find((text) => text !== null) ?? null;
    const listen = { host: '127.0.0.1', port: pebble.ports.http };
    const opening = startChallengeListener({ listen, challenges: { answer } });
    shared = { folders, opening };
    sharedListeners.set(pebble, shared);
    const listener = await opening;
    onTestFinished(() => listener.close(0));
  }
  shared.folders.add(challenges);
  await shared.opening;
}

export interface SentRequest {
  /** First part of Pebble's path, such as `order-plz`. */
  what: string;
  method: string;
}

/** Counts the requests of this process to an authority, including repetitions for a nonce. */
export function watchRequests({ directoryUrl }: Pick<Pebble, 'directoryUrl'>) {
  const asked: SentRequest[] = [];
  const { host: authority } = new URL(directoryUrl);
  const watch = (message: unknown) => {
    const { request } = message as { request: { host: string; path: string; method: string } };
    const header = Reflect.apply(Reflect.get(request, 'getHeader'), request, ['host']);
    if (header !== authority) return;
    asked.push({ what: request.path.split('/')[1] ?? '', method: request.method });
  };
  diagnosticsChannel.subscribe('http.client.request.start', watch);
  onTestFinished(() => void diagnosticsChannel.unsubscribe('http.client.request.start', watch));
  const count = (what: string) =>
    asked.filter((one) => one.what === what && one.method !== 'HEAD').length;
  return {
    asked,
    orders: () => count('order-plz'),
    finalized: () => count('finalize-order'),
    accounts: () => count('sign-me-up'),
    directories: () => count('dir'),
  };
}

/** A test with its own authority and the requests to it. */
export const it = test
  .extend('pebble', () => startPebble())
  .extend('requests', ({ pebble }) => watchRequests(pebble));
