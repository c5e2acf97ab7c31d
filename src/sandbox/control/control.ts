/** The control port: looks into the sandbox and steers it, apart from what it imitates. */
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { methodNotAllowed } from 'hono/method-not-allowed';
import { SubscriptionRefusal } from '../account/subscription-refusal.ts';
import type { Holdings } from '../publishing/holdings.ts';
import {
  type AccountControlOptions,
  accountOperations,
  addAccountControl,
} from './control-account.ts';
import { addEventControl, type EventControlOptions, eventOperations } from './control-events.ts';
import {
  addInferenceControl,
  type InferenceControlOptions,
  inferenceOperations,
} from './control-inference.ts';
import { answerProblem, ControlProblem } from './control-problem.ts';
import {
  addPublishingReading,
  addPublishingSteering,
  type PublishingControlOptions,
  publishingOperations,
} from './control-publishing.ts';

export interface ControlOptions
  extends PublishingControlOptions,
    AccountControlOptions,
    EventControlOptions,
    InferenceControlOptions {
  /** Shown at `/`; without secrets. */
  readonly about: Readonly<Record<string, string | null>>;
  readonly holdings: Pick<Holdings, 'totals' | 'find'>;
}

const bodyBytesMax = 64 * 1024;

/** Creates the app of the control port; it opens nothing. Answers JSON, faults as problem JSON. */
export function createControlApp(options: ControlOptions): Hono {
  const { publisher, about } = options;
  const app = new Hono();
  app.use(methodNotAllowed({ app, onMethodNotAllowed: refuseMethod }));
  app.use(bodyLimit({ maxSize: bodyBytesMax, onError: refuseSize }));
  app.notFound((context) =>
    answerProblem(
      context,
      new ControlProblem(
        404,
        'There is nothing here',
        `The control port has no ${context.req.path}; GET / lists what it has.`,
      ),
    ),
  );
  app.onError((error, context) => answerProblem(context, toProblem(error)));
  app.get('/', (context) =>
    context.json({
      what: 'Control port of the earshot sandbox, which imitates the catalogue, its identity provider, and an inference service.',
      ...about,
      paused: publisher.paused(),
      operations: {
        ...publishingOperations,
        ...eventOperations,
        ...accountOperations,
        ...inferenceOperations,
      },
    }),
  );
  addPublishingReading(app, options);
  addPublishingSteering(app, options);
  addEventControl(app, options);
  addAccountControl(app, options);
  addInferenceControl(app, options);
  return app;
}

const refuseMethod: NonNullable<Parameters<typeof methodNotAllowed>[0]['onMethodNotAllowed']> = (
  context,
  methods,
) => {
  const { method, path } = context.req;
  const detail = `${path} does not take ${method}; use ${methods.join(' or ')}. GET / lists what there is.`;
  return answerProblem(context, new ControlProblem(405, 'The method is not allowed', detail), {
    Allow: methods.join(', '),
  });
};

const refuseSize: NonNullable<Parameters<typeof bodyLimit>[0]['onError']> = (context) => {
  const detail = `The body was not read, because it is larger than ${bodyBytesMax} bytes; send a shorter one.`;
  return answerProblem(context, new ControlProblem(413, 'The body is too large', detail));
};

function toProblem(error: Error): ControlProblem {
  if (error instanceof ControlProblem) return error;
  if (error instanceof SubscriptionRefusal) {
    const status = error.kind === 'limit' ? 409 : 400;
    return new ControlProblem(status, 'The account refuses the subscription', error.message);
  }
  // The port is a tester's own: hiding the cause would only cost them time.
  const detail = `The sandbox failed because of: ${error.message}. This is a fault in it; restart it and report what you did.`;
  return new ControlProblem(500, 'The sandbox failed', detail);
}
