/** The public face: Basic Auth, readiness probe and intake, as a Hono app that has opened nothing. */
import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { AppError } from '../domain/app-error.ts';
import type { Intake, Receipt } from '../domain/ports.ts';
import type { Fault } from '../domain/read-notifications.ts';
import { problemResponse, statusOf } from '../http/problem.ts';
import { createBodyReader } from '../http/read-body.ts';
import { createGate, type GateOptions } from './gate.ts';

/** What became of one request, for those who count. */
export type Outcome = Receipt['outcome'] | 'unauthorized' | 'too_large' | 'unavailable' | 'failed';

export interface ReceiverOptions extends GateOptions {
  intake: Intake;
  /** Called once for each request to `/notifications`. */
  observe?: (outcome: Outcome, subscription: string | null) => void;
}

/** Design, interface contract: bodies up to 1 MiB. */
export const bodyBytesMax = 2 ** 20;
/** All bodies being received at one time; beyond it senders get 503. */
const allBodiesBytesMax = 64 * 2 ** 20;

const path = '/notifications/:subscription{[a-z0-9][a-z0-9-]{0,62}}?';
const allowed = 'GET, HEAD, POST';

type Bindings = { Bindings: HttpBindings; Variables: { requestId: string } };

/** Builds the app for every row of the design's status table. */
export function createReceiverApp(options: ReceiverOptions): Hono<Bindings> {
  const { intake, log, nowUs, newRequestId, observe = () => undefined } = options;
  const bodies = createBodyReader({ bodyBytesMax, allBodiesBytesMax });
  const refuseStranger = createGate(options, () => observe('unauthorized', null));
  const app = new Hono<Bindings>({ strict: false });

  app.on(['GET', 'HEAD'], path, async (c) => {
    const refusal = refuseStranger(c.env.incoming);
    if (refusal !== null) return refusal;
    await intake.checkWritable();
    return c.body(null, 200);
  });

  app.post(path, async (c) => {
    const refusal = refuseStranger(c.env.incoming);
    if (refusal !== null) return refusal;
    const { incoming } = c.env;
    const subscription = c.req.param('subscription') ?? null;
    const receipt = await intake.accept({
      body: await bodies.read(incoming),
      subscription,
      receivedAtUs: nowUs(),
      source: 'push',
      headers: incoming.rawHeaders,
    });
    observe(receipt.outcome, subscription);
    if (receipt.outcome === 'rejected') {
      const requestId = newRequestId();
      const { faults, quarantineId, stored } = receipt;
      log.warn({ requestId, quarantineId, stored, faults }, 'body put in quarantine');
      return problemResponse(notANotification(faults), requestId);
    }
    log.debug({ subscription, ...receipt }, 'notification received');
    return c.json({ status: receipt.outcome });
  });

  app.all(path, (c) => {
    return c.body(null, 405, { Allow: allowed });
  });

  app.notFound(() => {
    return problemResponse(new AppError('not_found', 'There is nothing here.'), newRequestId());
  });

  app.onError((error, c) => {
    const requestId = newRequestId();
    const status = statusOf(error);
    const fields = { requestId, status, path: c.req.path, err: error };
    if (status === 500) log.error(fields, 'request failed');
    else log.warn(fields, 'request refused');
    observe(outcomeOf(status), c.req.param('subscription') ?? null);
    return problemResponse(error, requestId);
  });

  return app;
}

function notANotification(faults: readonly Fault[]): AppError {
  return new AppError('invalid', 'The body is not a notification. It is kept as it came.', {
    details: faults.map(({ index, message }) =>
      index === null ? message : `Item ${index}: ${message}`,
    ),
  });
}

function outcomeOf(status: number): Outcome {
  if (status === 413) return 'too_large';
  return status === 503 ? 'unavailable' : 'failed';
}
