/** The public face: Basic Auth, readiness probe and intake, as a Hono app that has opened nothing. */
import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { AppError, errorText } from '../domain/app-error.ts';
import type { Intake, Receipt } from '../domain/ports.ts';
import type { Fault } from '../domain/read-notifications.ts';
import { knownEncodings } from '../http/content-encoding.ts';
import { problemResponse, statusOf } from '../http/problem.ts';
import { createBodyReader } from '../http/read-body.ts';
import { createGate, type GateOptions } from './gate.ts';

/** What became of one request, for those who count. */
export type Outcome = Receipt['outcome'] | 'unauthorized' | 'too_large' | 'unavailable' | 'failed';

export interface ReceiverOptions extends GateOptions {
  intake: Intake;
  /** Called once for each request to `/notifications`; with the receipt when there is one. */
  observe?: (outcome: Outcome, subscription: string | null, receipt?: Receipt) => void;
  /** Called for each delivery that was answered after its commit, with the user name it came with. */
  onDelivered?: (subscription: string | null, username: string) => void;
}

/** Design, interface contract: bodies up to 1 MiB. */
export const bodyBytesMax = 2 ** 20;
/** All bodies being received at one time; beyond it senders get 503. */
const allBodiesBytesMax = 64 * 2 ** 20;

const unavailableLogIntervalUs = 10_000_000;

const named = '/notifications/:subscription{[a-z0-9][a-z0-9-]{0,62}}';
/** A slash at the end is spelled out: `strict: false` would end where this is mounted in another app. */
const paths = ['/notifications', '/notifications/', named, `${named}/`];
const allowed = 'GET, HEAD, POST';
const wherePathsLead =
  'Notifications go to /notifications/<name>; a name holds small letters, digits and dashes.';

type Environment = { Bindings: HttpBindings };

/** Builds the app for every row of the design's status table. */
export function createReceiverApp(options: ReceiverOptions): Hono<Environment> {
  const { intake, log, nowUs, newRequestId } = options;
  const { observe = () => undefined, onDelivered = () => undefined } = options;
  const bodies = createBodyReader({ bodyBytesMax, allBodiesBytesMax });
  const letIn = createGate(options, () => observe('unauthorized', null));
  const app = new Hono<Environment>();

  app.on(['GET', 'HEAD'], paths, async (c) => {
    const { refusal } = letIn(c.env.incoming);
    if (refusal !== undefined) return refusal;
    await intake.checkWritable();
    return c.body(null, 200);
  });

  app.on('POST', paths, async (c) => {
    const { incoming } = c.env;
    const passage = letIn(incoming);
    if (passage.refusal !== undefined) return passage.refusal;
    const subscription = c.req.param('subscription') ?? null;
    const receipt = await intake.accept({
      ...(await bodies.read(incoming)),
      subscription,
      receivedAtUs: nowUs(),
      source: 'push',
      headers: incoming.rawHeaders,
    });
    observe(receipt.outcome, subscription, receipt);
    const requestId = newRequestId();
    logReceipt(log, receipt, { requestId, subscription });
    if (receipt.outcome === 'rejected') return refusedBody(receipt.faults, requestId);
    onDelivered(subscription, passage.username);
    return c.json({ status: receipt.outcome });
  });

  app.on('ALL', paths, () => {
    const refusal = new AppError('wrong_method', `Use one of ${allowed}.`);
    const response = problemResponse(refusal, newRequestId());
    response.headers.set('Allow', allowed);
    return response;
  });

  app.notFound((c) => {
    const requestId = newRequestId();
    if (options.checkCredentials(c.env.incoming.headers.authorization) === null) {
      return problemResponse(new AppError('not_found', 'There is nothing here.'), requestId);
    }
    // Who knows the password means to reach us: a mistyped path must not swallow notifications.
    log.warn({ requestId, method: c.req.method, path: c.req.path }, 'a path that takes nothing');
    return problemResponse(new AppError('not_found', wherePathsLead), requestId);
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

/** While nothing can be stored every request fails for one reason, which is told now and then. */
function createFailureLog({ log, nowUs }: ReceiverOptions) {
  let toldUs = Number.NEGATIVE_INFINITY;
  return (err: Error, fields: { requestId: string; status: number; path: string }) => {
    if (fields.status === 500) return log.error({ ...fields, err }, 'request failed');
    if (fields.status !== 503)
      return log.warn({ ...fields, reason: errorText(err) }, 'request refused');
    if (nowUs() - toldUs < unavailableLogIntervalUs) return log.debug(fields, 'request refused');
    toldUs = nowUs();
    log.error({ ...fields, err }, 'nothing can be stored; senders get 503');
  };
}

function logReceipt(
  log: ReceiverOptions['log'],
  receipt: Receipt,
  request: { requestId: string; subscription: string | null },
): void {
  const { outcome, quarantineId } = receipt;
  if (outcome !== 'rejected') log.debug({ ...request, ...receipt }, 'notification received');
  if (quarantineId === undefined) return;
  const { requestId } = request;
  const why =
    outcome === 'rejected'
      ? { stored: receipt.stored, faults: receipt.faults }
      : { reason: 'ack-id-reused' };
  log.warn({ requestId, quarantineId, ...why }, 'body put in quarantine');
}

function refusedBody(faults: readonly Fault[], requestId: string): Response {
  const isUnsupported = faults[0]?.code === 'unsupported-encoding';
  const details = faults.map(({ index, message }) =>
    index === null ? message : `Item ${index}: ${message}`,
  );
  const error = new AppError(
    isUnsupported ? 'unsupported' : 'invalid',
    'The body is not a notification. It is kept as it came.',
    { details },
  );
  const response = problemResponse(error, requestId);
  if (isUnsupported) response.headers.set('Accept-Encoding', knownEncodings);
  return response;
}

function outcomeOf(status: number): Outcome {
  if (status === 413) return 'too_large';
  return status === 503 ? 'unavailable' : 'failed';
}
