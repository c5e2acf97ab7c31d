/** The part of the control port that turns the knobs of the inference service and tells what it was asked. */
import type { Hono } from 'hono';
import type { InferenceService } from '../inference/inference-service.ts';
import { changedInferenceSchema } from '../inference/inference-settings.ts';
import { readBody } from './control-problem.ts';

export interface InferenceControlOptions {
  readonly inference: Pick<InferenceService, 'knobs' | 'record'>;
}

/** What it can do, for whoever asks the port. */
export const inferenceOperations = {
  'GET /inference': 'The knobs of the inference service.',
  'PATCH /inference': 'Turns knobs, e.g. {"faults":{"rateLimited":0.1},"next":{"hang":1}}.',
  'GET /inference/requests': 'Its last requests and counts of all, without keys and texts.',
};

/** Adds the routes. */
export function addInferenceControl(app: Hono, { inference }: InferenceControlOptions): void {
  const { knobs, record } = inference;
  app.get('/inference', (context) => context.json(knobs.current()));
  app.patch('/inference', async (context) => {
    const schema = changedInferenceSchema(knobs.current());
    const settings = await readBody(context.req, schema, '{"next":{"rateLimited":2}}');
    return context.json(knobs.change(settings));
  });
  app.get('/inference/requests', (context) =>
    context.json({ totals: record.totals(), requests: record.requests() }),
  );
}
