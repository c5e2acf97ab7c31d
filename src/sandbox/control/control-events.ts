/** The part of the control port that tells the truth about the catalogue's events. */
import type { Hono } from 'hono';
import { z } from 'zod';
import type { DeliveryRecord } from '../delivery/delivery-record.ts';
import { notificationEvents } from '../delivery/notification.ts';
import { catalogueEvents } from '../publishing/catalogue-events.ts';
import type { EventLedger } from '../publishing/event-ledger.ts';
import type { Holdings } from '../publishing/holdings.ts';
import { readQuery } from './control-problem.ts';

export interface EventControlOptions {
  readonly ledger: EventLedger;
  readonly record: DeliveryRecord;
  readonly holdings: Pick<Holdings, 'find'>;
}

/** What it can do, for whoever asks the port. */
export const eventOperations = {
  'GET /events?event=&filter=&after=&limit=':
    "The catalogue's events as JSON lines, each with what became of it for every subscription.",
};

const number = z
  .string()
  .regex(/^\d{1,9}$/, 'expected a whole number')
  .transform(Number);

const eventsQuerySchema = z.strictObject({
  event: z.enum(notificationEvents).optional(),
  filter: z.string().default(''),
  after: number.optional(),
  limit: number.default(10_000),
});

/** Adds the route. */
export function addEventControl(app: Hono, options: EventControlOptions): void {
  app.get('/events', (context) => {
    const query = readQuery(context.req, eventsQuerySchema, '/events?event=deleted&limit=100');
    const { event, filter, after, limit } = query;
    const events = event === undefined ? undefined : [event];
    const found = catalogueEvents(options, { events, filter, after, limit });
    const lines = Array.from(found, (one) => `${JSON.stringify(one)}\n`);
    return context.body(lines.join(''), 200, { 'Content-Type': 'application/x-ndjson' });
  });
}
