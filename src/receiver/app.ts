/** The app of the public listener: Basic Auth, readiness probe and intake. Opens no resources. */
import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { problemResponse, statusOf } from '../core/http/problem.ts';
import { createBodyReader } from '../core/http/request-body.ts';
import { AppError, errorText } from '../core/terms/app-error.ts';
import type { Fault } from '../core/terms/notification.ts';
import type { Intake, Receipt } from '../core/terms/ports.ts';
import { createGate, type GateOptions } from './basic-auth.ts';

/** Outcome of a request, for metrics. */
export type Outcome = Receipt['outcome'] | 'unauthorized' | 'too_large' | 'unavailable' | 'failed';

export interface ReceiverOptions extends GateOptions {
  intake: Intake;
  /** Called once for each request to `/notifications`; with the receipt when there is one. */
  observe?: (outcome: Outcome, subscription: string | null, receipt?: Receipt) => void;
  /** Called for each delivery after its commit, with the user name of its request. */
  onDelivered?: (subscription: string | null, username: string) => void;
}

const unavailableLogIntervalUs = 10_000_000;

const named = '/notifications/:subscription{[a-z0-9][a-z0-9-]{0,62}}';
/** Lists trailing slashes: `strict: false` has no effect when this is mounted in another app. */
const paths = ['/notifications', '/notifications/', named, `${named}/`];
const allowed = 'GET, HEAD, POST';
const pathAdvice =
  'Send notifications to /notifications/<name>; a name has lower-case letters, digits and dashes.';

type Environment = { Bindings: HttpBindings };

/** Creates the app, which implements the status table of the design. */
export function createReceiverApp(options: ReceiverOptions): Hono<Environment> {
  const { intake, log, nowUs, newRequestId } = options;
  const { observe = () => undefined, onDelivered = () => undefined } = options;
  const readBody = createBodyReader();
  const authenticate = createGate(options, () => observe('unauthorized', null));
  const app = new Hono<Environment>();

  app.on(['GET', 'HEAD'], paths, async (c) => {
    const { refusal } = authenticate(c.env.incoming);
    if (refusal !== undefined) return refusal;
    await intake.checkWritable();
    return c.body(null, 200);
  });

  app.on('POST', paths, async (c) => {
    const { incoming } = c.env;
    const login = authenticate(incoming);
    if (login.refusal !== undefined) return login.refusal;
    const subscription = c.req.param('subscription') ?? null;
    const receipt = await intake.accept({
      body: await readBody(incoming),
      subscription,
      receivedAtUs: nowUs(),
      source: 'push',
      headers: incoming.rawHeaders,
    });
    observe(receipt.outcome, subscription, receipt);
    const requestId = newRequestId();
    logReceipt(log, receipt, { requestId, subscription });
    if (receipt.outcome === 'rejected') return bodyRefusal(receipt.faults, requestId);
    onDelivered(subscription, login.username);
    return c.json({ status: receipt.outcome });
  });

  app.on('ALL', paths, () => {
    const refusal = new AppError('wrong_method', `Use one of ${allowed}.`);
    return problemResponse(refusal, newRequestId(), { Allow: allowed });
  });

  app.notFound((c) => {
    const requestId = newRequestId();
    if (options.checkCredentials(c.env.incoming.headers.authorization) === null) {
      return problemResponse(new AppError('not_found', 'Unknown path.'), requestId);
    }
    // With valid credentials, the path is probably mistyped: the notifications must not get lost.
    log.warn({ requestId, method: c.req.method, path: c.req.path }, 'unknown path');
    return problemResponse(new AppError('not_found', pathAdvice), requestId);
  });

  const logFailure = createFailureLog(options);
  app.onError((error, c) => {
    const requestId = newRequestId();
    const status = statusOf(error);
    logFailure(error, { requestId, status, path: c.req.path });
    observe(outcomeOf(status), c.req.param('subscription') ?? null);
    return problemResponse(error, requestId);
  });

  return app;
}

/** Logs failures. While storing is impossible, every request fails, so that reason is logged at intervals. */
function createFailureLog({ log, nowUs }: ReceiverOptions) {
  let loggedUs = Number.NEGATIVE_INFINITY;
  return (err: Error, fields: { requestId: string; status: number; path: string }) => {
    if (fields.status === 500) return log.error({ ...fields, err }, 'request failed');
    if (fields.status !== 503)
      return log.warn({ ...fields, reason: errorText(err) }, 'request refused');
    if (nowUs() - loggedUs < unavailableLogIntervalUs) return log.debug(fields, 'request refused');
    loggedUs = nowUs();
    log.error({ ...fields, err }, 'failed to store notification');
  };
}

function logReceipt(
  log: ReceiverOptions['log'],
  receipt: Receipt,
  request: { requestId: string; subscription: string | null },
): void {
  const { outcome, quarantineId } = receipt;
  if (outcome !== 'rejected') log.debug({ ...request, ...receipt }, 'notification received');
  if (quarantineId === undefined && outcome !== 'rejected') return;
  const { requestId } = request;
  const cause =
    outcome === 'rejected'
      ? { stored: receipt.stored, faults: receipt.faults }
      : { reason: 'ack-id-reused' };
  log.warn({ requestId, quarantineId, ...cause }, 'quarantined body');
}

function bodyRefusal(faults: readonly Fault[], requestId: string): Response {
  const isUnsupported = faults[0]?.code === 'unsupported-encoding';
  const details = faults.map(({ index, message }) =>
    index === null ? message : `Item ${index}: ${message}`,
  );
  const error = new AppError(
    isUnsupported ? 'unsupported' : 'invalid',
    'The body is not a valid notification. It was quarantined unchanged.',
    { details },
  );
  return problemResponse(error, requestId, isUnsupported ? { 'Accept-Encoding': 'identity' } : {});
}

function outcomeOf(status: number): Outcome {
  if (status === 413) return 'too_large';
  return status === 503 ? 'unavailable' : 'failed';
}
