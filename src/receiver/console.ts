/** Opens the private listener. Intake never depends on it. */

import {
  type ConsoleOptions,
  createConsoleApp,
  type Readiness,
  type UnreadyReason,
} from '../core/api/app.ts';
import { loadListenerSlots } from '../core/api/listener-slot.ts';
import { type Io, pause } from '../core/cli/io.ts';
import { nameCalled } from '../core/cli/output.ts';
import type { Config, ServeConfig } from '../core/config/config.ts';
import { type Listener, startListener } from '../core/http/listener.ts';
import { localUrl } from '../core/http/network-address.ts';
import { problemResponse } from '../core/http/problem.ts';
import { AppError, errorText, isAppError } from '../core/terms/app-error.ts';
import type { Store } from '../store/store.ts';
import { type ReaderPorts, tablesOf } from '../store/tables.ts';
import { createCredentialCheck, createDeviceCookies, createGate } from './basic-auth.ts';
import type { ServedCertificate } from './slots.ts';

/** The user name that belongs to EARSHOT_CONSOLE_PASSWORD. */
const username = 'earshot';

/** For the viewers of 16 live streams, each with a few connections, and some programs. */
const connectionsMax = 200;

/** Time to send an answer of a thousand records at shutdown. */
const graceMs = 2_000;

type ConsoleIo = Pick<Io, 'nowUs' | 'newId' | 'features'> & Partial<Pick<Io, 'env'>>;

type ConsoleParts = Omit<
  ConsoleOptions,
  | 'authorize'
  | 'programName'
  | 'listenHost'
  | 'newRequestId'
  | 'catalogueUrl'
  | 'consoleUrl'
  | 'origins'
  | 'nowUs'
  | 'limits'
  | 'closing'
  | 'slots'
>;

/** Returns null if the port cannot be opened: that is logged, and the receiver continues. */
async function openConsole(
  config: NonNullable<Config['console']>,
  { log, ...parts }: ConsoleParts,
  { nowUs, newId, features, env = {} }: ConsoleIo,
  closing: AbortSignal,
): Promise<Listener | null> {
  const { listen, password, catalogueUrl, url: consoleUrl, origins } = config;
  const checkCredentials =
    password === undefined ? null : createCredentialCheck([{ username, password }]);
  const devices = createDeviceCookies({ nowUs, newId });
  const gate = { log, nowUs, newRequestId: newId, devices };
  const app = createConsoleApp({
    ...parts,
    slots: await loadListenerSlots(features),
    catalogueUrl,
    consoleUrl,
    origins,
    programName: nameCalled(env),
    log,
    nowUs,
    closing,
    newRequestId: newId,
    listenHost: listen.host,
    authorize: checkCredentials && createGate({ ...gate, checkCredentials }, () => undefined),
  });
  return startListener({
    fetch: app.fetch,
    listen,
    listenVariable: 'EARSHOT_CONSOLE_LISTEN',
    limits: { connectionsMax },
    onBadRequest: () =>
      problemResponse(new AppError('invalid', 'The request is malformed.'), newId()),
  }).catch((error: unknown) => {
    if (!isAppError(error, 'configuration')) throw error;
    log.error(
      { reason: errorText(error) },
      'failed to open the private listener; notifications are still accepted',
    );
    return null;
  });
}

type QueryParts = Omit<ConsoleParts, keyof ReaderPorts | 'notifications' | 'quarantine'> & {
  store: Store;
};

/** Returns the ports of the store that the private listener reads. */
function portsOf(store: Store, features: ConsoleIo['features']) {
  const groups = tablesOf(features).map(({ group }) => [group, Reflect.get(store, group)]);
  // Each group is a port of the store.
  const ports = Object.fromEntries(groups) as ReaderPorts;
  return { ...ports, notifications: store, quarantine: store };
}

/**
 * Opens the private listener. Returns its address, for example `http://127.0.0.1:8080`; null for none. Failures are
 * logged; intake continues without queries.
 */
export async function serveQueries(
  { console }: Pick<ServeConfig, 'console'>,
  { store, ...parts }: QueryParts,
  io: ConsoleIo,
): Promise<{ consoleUrl: string | null; close(): Promise<void> }> {
  const closing = new AbortController();
  const opened =
    console &&
    (await openConsole(console, { ...portsOf(store, io.features), ...parts }, io, closing.signal));
  if (opened === null) return { consoleUrl: null, close: async () => undefined };
  const close = () => {
    closing.abort();
    return opened.close(graceMs);
  };
  return { consoleUrl: localUrl(opened.address), close };
}

/** Maximum time for one small commit. A slower disk delays senders for too long. */
const writeTimeoutMs = 3_000;

export function createReadiness(parts: {
  store: Pick<Store, 'checkWritable' | 'isWriterRunning'>;
  /** Absent behind a proxy, which has the certificate. */
  certificate?: Pick<ServedCertificate, 'served'> | undefined;
  nowUs: () => number;
  timeoutMs?: number;
}): Readiness {
  const { store, certificate, nowUs, timeoutMs = writeTimeoutMs } = parts;
  return async () => {
    const found = [await writeFault(store, timeoutMs), certificateFault(certificate, nowUs())];
    return found.filter((reason) => reason !== null);
  };
}

async function writeFault(
  store: Pick<Store, 'checkWritable' | 'isWriterRunning'>,
  timeoutMs: number,
): Promise<UnreadyReason | null> {
  const done = new AbortController();
  const timeout = pause(timeoutMs, done.signal).then(() => 'writer' as const);
  const fault = store.checkWritable().then(
    () => null,
    () => (store.isWriterRunning() ? 'store' : 'writer'),
  );
  const first = await Promise.race([fault, timeout]);
  done.abort();
  return first;
}

function certificateFault(
  certificate: Pick<ServedCertificate, 'served'> | undefined,
  nowUs: number,
): UnreadyReason | null {
  if (certificate === undefined) return null;
  const served = certificate.served();
  if (served === null) return 'certificate';
  const { notBeforeUs, notAfterUs } = served;
  return notBeforeUs <= nowUs && nowUs < notAfterUs ? null : 'certificate';
}
