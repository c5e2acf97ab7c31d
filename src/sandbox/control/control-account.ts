/** The part of the control port that looks into the account and turns the knobs of its services. */
import type { Hono } from 'hono';
import { addedSubscriptionSchema, toNewSubscription } from '../account/added-subscription.ts';
import { viewOf } from '../account/subscription.ts';
import type { Subscriptions } from '../account/subscriptions.ts';
import type { RequestLog } from '../services/request-log.ts';
import {
  changedSettingsSchema,
  type ServiceKnobs,
  shownSettings,
} from '../services/service-settings.ts';
import { readBody } from './control-problem.ts';

export interface AccountControlOptions {
  readonly subscriptions: Subscriptions;
  readonly knobs: ServiceKnobs;
  readonly requests: RequestLog;
}

/** What it can do, for whoever asks the port. */
export const accountOperations = {
  'GET /subscriptions': "The account's subscriptions, without credentials.",
  'POST /subscriptions':
    'Adds one as a stranger would, e.g. {"type":"pull"}; a push one needs an endpoint.',
  'GET /service': 'The knobs of the subscription service and the identity provider.',
  'PATCH /service': 'Turns knobs, e.g. {"runningMax":1,"unavailable":true}.',
  'GET /requests': 'The last requests that the services were sent.',
};

/** Adds the routes. */
export function addAccountControl(app: Hono, options: AccountControlOptions): void {
  const { subscriptions, knobs, requests } = options;
  app.get('/subscriptions', (context) =>
    context.json({ subscriptions: subscriptions.list().map(viewOf) }),
  );
  app.post('/subscriptions', async (context) => {
    const added = await readBody(context.req, addedSubscriptionSchema, '{"type":"pull"}');
    return context.json(viewOf(subscriptions.create(toNewSubscription(added))), 201);
  });
  app.get('/service', (context) => context.json(shownSettings(knobs.current())));
  app.patch('/service', async (context) => {
    const schema = changedSettingsSchema(knobs.current());
    const settings = await readBody(context.req, schema, '{"runningMax":1}');
    return context.json(shownSettings(knobs.change(settings)));
  });
  app.get('/requests', (context) => context.json({ requests: requests.entries() }));
}
