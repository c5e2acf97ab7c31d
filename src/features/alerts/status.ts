/** Active alerts in the status. */

import { z } from 'zod';
import { activeAlertsOf, defineStatusPart } from '../../core/status/status.ts';
import {
  type Evaluation,
  evaluation,
  evaluationSchema,
  ok,
  worstOf,
} from '../../core/terms/evaluation.ts';
import { listed } from '../../core/terms/text.ts';

const alert = z.object({
  id: z.int().min(0),
  kind: z.string(),
  subject: z.string(),
  ...evaluationSchema.shape,
  raisedAtUs: z.number(),
});

const part = defineStatusPart({
  name: 'alerts',
  unknown: { alerts: [] },
  fields: { alerts: z.array(alert).describe('Active alerts, newest first.') },
  open: ({ store, io }) => ({
    read: async () => ({ alerts: await activeAlertsOf(io.features, store) }),
  }),
  evaluate: ({ alerts, receiver }): Evaluation => {
    const worst = worstOf(alerts);
    if (worst === undefined) {
      const only = receiver === null ? ', but only a running receiver raises alerts' : '';
      return ok(`no active alerts${only}`);
    }
    const names = alerts.map(({ kind, subject }) =>
      subject === '' ? kind : `${kind} (${subject})`,
    );
    const text = `${alerts.length} active: ${listed(names)}`;
    return evaluation(worst.level, text, 'Run `earshot alerts` for details.');
  },
});

export const parts = [part];
