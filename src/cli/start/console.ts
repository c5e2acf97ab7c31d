/** Opens the private listener beside the receiver; intake never depends on it. */
import type { Config, ServeConfig } from '../../config/config.ts';
import {
  type ConsoleOptions,
  createConsoleApp,
  type Readiness,
  type UnreadyReason,
} from '../../console/app.ts';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import type { Products } from '../../domain/products.ts';
import { type Listener, startListener } from '../../http/listener.ts';
import { hostInUrl } from '../../http/network-address.ts';
import { problemResponse } from '../../http/problem.ts';
import { createCredentialCheck, createGate } from '../../receiver/basic-auth.ts';
import { startIndexing } from '../../store/products/index-maintenance.ts';
import { openProducts } from '../../store/products/products.ts';
import type { Store } from '../../store/store.ts';
import { createClosers } from '../closers.ts';
import { type Io, pause } from '../io.ts';
import type { ServedCertificate } from './certificate.ts';

/** The user name that belongs to EARSHOT_CONSOLE_PASSWORD. */
const username = 'earshot';

/** A person and a few programs: what is more than this is no use of it. */
const connectionsMax = 50;

/** An answer of a thousand records may need this long to be handed over when the program ends. */
const graceMs = 2_000;

type ConsoleParts = Pick<
  ConsoleOptions,
  | 'products'
  | 'notifications'
  | 'summaries'
  | 'completeness'
  | 'status'
  | 'comparisonOff'
  | 'metrics'
  | 'readiness'
  | 'log'
>;

/** Null for a port that cannot be opened: that is logged, and all else continues. */
async function openConsole(
  config: NonNullable<Config['console']>,
  { log, ...parts }: ConsoleParts,
  { nowUs, newId }: Pick<Io, 'nowUs' | 'newId'>,
): Promise<Listener | null> {
  const { listen, password, catalogueUrl } = config;
  const checkCredentials =
    password === undefined ? null : createCredentialCheck([{ username, password }]);
  const gate = { log, nowUs, newRequestId: newId };
  const app = createConsoleApp({
    ...parts,
    catalogueUrl,
    log,
    nowUs,
    newRequestId: newId,
    listenHost: listen.host,
    letIn: checkCredentials && createGate({ ...gate, checkCredentials }, () => undefined),
  });
  return startListener({
    fetch: app.fetch,
    listen,
    listenVariable: 'EARSHOT_CONSOLE_LISTEN',
    limits: { connectionsMax },
    onBadRequest: () =>
      problemResponse(new AppError('invalid', 'The request cannot be read.'), newId()),
  }).catch((error: unknown) => {
    if (!isAppError(error, 'configuration')) throw error;
    log.error(
      { reason: errorText(error) },
      'there is no private listener; notifications are taken',
    );
    return null;
  });
}

interface ServedQueries {
  products: Products;
  /** Such as `http://127.0.0.1:8080`; null where there is no private listener. */
  consoleUrl: string | null;
  close(): Promise<void>;
}

/** What fails here is logged: intake continues without it. */
export async function serveQueries(
  { dataDir, diskReserveBytes, console, index }: ServeConfig,
  asked: Omit<ConsoleParts, 'products'>,
  io: Pick<Io, 'nowUs' | 'newId'>,
): Promise<ServedQueries> {
  const closers = createClosers();
  if (index) {
    const place = { dataDir, diskReserveBytes };
    const indexing = startIndexing({ ...place, log: asked.log, duringIntake: true });
    closers.add(() => indexing.stop());
  }
  const products = openProducts(dataDir);
  closers.add(() => products.close());
  const opened = console && (await openConsole(console, { ...asked, products }, io));
  if (opened === null) return { products, consoleUrl: null, close: closers.closeAll };
  closers.add(() => opened.close(graceMs));
  const { host, port } = opened.address;
  const consoleUrl = `http://${hostInUrl(host)}:${port}`;
  return { products, consoleUrl, close: closers.closeAll };
}

/** A disk that is this slow for one small commit keeps senders waiting for too long. */
const writeTimeoutMs = 3_000;

export function createReadiness(parts: {
  store: Pick<Store, 'checkWritable' | 'isWriterRunning'>;
  certificate: Pick<ServedCertificate, 'served'>;
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
  const late = pause(timeoutMs, done.signal).then(() => 'writer' as const);
  const fault = store.checkWritable().then(
    () => null,
    () => (store.isWriterRunning() ? 'store' : 'writer'),
  );
  const first = await Promise.race([fault, late]);
  done.abort();
  return first;
}

/** Behind a proxy there is none to look at. */
function certificateFault(
  { served }: Pick<ServedCertificate, 'served'>,
  nowUs: number,
): UnreadyReason | null {
  const certificate = served();
  if (certificate === undefined) return null;
  if (certificate === null) return 'certificate';
  const { notBefore, notAfter } = certificate;
  const isValid = notBefore.getTime() * 1_000 <= nowUs && nowUs < notAfter.getTime() * 1_000;
  return isValid ? null : 'certificate';
}
