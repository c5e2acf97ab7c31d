/** The receiver as a part of the status: whether it accepts notifications. */

import { z } from 'zod';
import { bytes, flag } from '../core/status/gauge.ts';
import { defineStatusPart, watchOne } from '../core/status/status.ts';
import { errorText } from '../core/terms/app-error.ts';
import { minuteUs } from '../core/terms/dates.ts';
import {
  checkOf,
  type Evaluation,
  evaluation,
  ok,
  problem,
  withAlerts,
} from '../core/terms/evaluation.ts';
import { agoText, lengthText, quoted } from '../core/terms/text.ts';

/** The subject is the reason why notifications cannot be stored. A queue may be full for a moment. */
export const intakeCheck = checkOf<string | null>(
  'intake',
  (reason) => {
    if (reason === null) return null;
    const found = problem(
      'critical',
      'Notifications cannot be stored. The catalogue retries each delivery three times, then drops the notification.',
      'Run `earshot doctor` and fix the fault. A running receiver then fetches lost notifications automatically. Otherwise run `earshot reconcile`.',
      quoted(reason),
    );
    return { ...found, raiseAfterUs: 0.75 * minuteUs };
  },
  5 * minuteUs,
);

const byteCount = z.number().min(0);

const receiver = z.object({
  startedAtUs: z.number().nullable(),
  pid: z.int().positive().nullable().describe('Process id of the receiver; null if not known.'),
  refusing: z
    .string()
    .nullable()
    .describe(
      'Reason why the receiver refuses notifications; null while the receiver accepts notifications.',
    ),
  queue: z
    .object({ bytes: byteCount, bytesMax: byteCount })
    .nullable()
    .describe(
      'Bodies that are not on disk yet. Above bytesMax, the receiver answers pushes with 503.',
    ),
});

const receiverPart = defineStatusPart({
  name: 'receiver',
  unknown: { receiver: null },
  fields: { receiver: receiver.nullable() },
  open: (sources) => ({
    read: async () => ({ receiver: await sources.receiver() }),
    watch: () => [
      watchOne(intakeCheck, async () => {
        const fault = sources.running?.store.checkWritable().then(() => null, errorText);
        return (await fault) ?? null;
      }),
    ],
  }),
  evaluate: ({ receiver, hasEndpoint, log, atUs }, situation): Evaluation => {
    if (receiver === null) {
      const [what, variable] = hasEndpoint
        ? ['no notifications are accepted', 'EARSHOT_LISTEN']
        : ['no queue is read', 'EARSHOT_CONSOLE_LISTEN'];
      return evaluation(
        'critical',
        `The receiver is not running: ${what} and no alerts are raised.`,
        `Start the receiver with \`earshot start\`. If the receiver is running, check ${variable}.`,
      );
    }
    const { refusing, startedAtUs, pid } = receiver;
    if (refusing !== null) {
      return evaluation(
        'critical',
        `Notifications are refused: ${refusing}`,
        'Run `earshot doctor`.',
      );
    }
    const up = startedAtUs === null ? '' : `, up for ${lengthText(atUs - startedAtUs)}`;
    const lastUs = log?.lastReceivedAtUs ?? null;
    const process = pid === null ? '' : ` (process ${pid})`;
    const last = lastUs === null ? 'none received yet' : `last received ${agoText(atUs - lastUs)}`;
    return withAlerts(ok(`accepting notifications${up}${process}; ${last}`), ['intake'], situation);
  },
  alertKinds: ['intake'],
  metrics: {
    Intake: [
      flag(
        'earshot_refusing',
        '1 while the receiver refuses notifications: the receiver cannot store, or has no valid certificate.',
        ({ receiver }) => receiver && receiver.refusing !== null,
      ),
      bytes(
        'earshot_queue_bytes',
        'Size of the bodies that are not on disk yet.',
        ({ receiver }) => receiver?.queue?.bytes,
      ),
      bytes(
        'earshot_queue_bytes_max',
        'Maximum size of the bodies that are not on disk yet. Above the maximum, the receiver answers pushes with 503.',
        ({ receiver }) => receiver?.queue?.bytesMax,
      ),
    ],
  },
});

export const parts = [receiverPart];
