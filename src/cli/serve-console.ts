/** Opens the private listener beside the receiver; intake never depends on it. */
import type { ConsoleConfig } from '../config/console-config.ts';
import { createConsoleApp } from '../console/console-app.ts';
import type { Readiness } from '../console/health-routes.ts';
import type { Metrics } from '../console/metrics/metrics.ts';
import { AppError, errorText, isAppError } from '../domain/app-error.ts';
import type { CompletenessReader } from '../domain/completeness.ts';
import type { Logger, NotificationLog } from '../domain/ports.ts';
import type { Products } from '../domain/products.ts';
import type { Status } from '../domain/status.ts';
import type { SummaryReader } from '../domain/summaries.ts';
import { hostInUrl } from '../http/listen-address.ts';
import { type Listener, startListener } from '../http/listener.ts';
import { problemResponse } from '../http/problem.ts';
import { createCredentialCheck } from '../receiver/basic-auth.ts';
import { createGate } from '../receiver/gate.ts';
import type { Io } from './io.ts';

/** The user name that belongs to EARSHOT_CONSOLE_PASSWORD. */
const username = 'earshot';

/** A person and a few programs: what is more than this is no use of it. */
const connectionsMax = 50;

/** An answer of a thousand records may need this long to be handed over when the program ends. */
const graceMs = 2_000;

export interface ServedConsole {
  /** Such as `http://127.0.0.1:8080`; null where it could not be opened. */
  url: string | null;
  close(): Promise<void>;
}

export interface ConsoleParts {
  products: Products;
  notifications: NotificationLog;
  summaries: SummaryReader;
  completeness: CompletenessReader;
  status: () => Promise<Status>;
  comparisonOff: () => string | null;
  metrics: Pick<Metrics, 'scrape'>;
  readiness: Readiness;
  log: Logger;
}

/** A port that cannot be opened is told to the log, and all else goes on. */
export async function serveConsole(
  config: ConsoleConfig,
  { log, ...parts }: ConsoleParts,
  { nowUs, newId }: Pick<Io, 'nowUs' | 'newId'>,
): Promise<ServedConsole> {
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
  const opened = await startListener({
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
  if (opened === null) return { url: null, close: async () => undefined };
  return { url: urlOf(opened), close: () => opened.close(graceMs) };
}

function urlOf({ address: { host, port } }: Listener): string {
  return `http://${hostInUrl(host)}:${port}`;
}
