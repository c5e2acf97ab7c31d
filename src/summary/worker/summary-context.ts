/** Dependencies of the summary jobs. */
import type { AcquireLock } from '../../domain/account.ts';
import { jittered } from '../../domain/job.ts';
import type { Cursors, Logger, NotificationLog } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';
import type {
  DigestScope,
  NewSummaryJob,
  Summaries,
  SummaryBudget,
} from '../../domain/summaries.ts';
import type { ChatClient } from '../chat/chat-client.ts';
import type { FaultScope } from '../chat/inference-fault.ts';
import type { Places } from '../places/places.ts';

export interface SummaryModel {
  /** `<vendor>/<model_name>`. */
  name: string;
  client: ChatClient;
}

export interface SummaryContext {
  notifications: Pick<NotificationLog, 'find' | 'lastPosition'> & Pick<Cursors, 'cursor'>;
  products: Pick<Products, 'find' | 'indexedPosition'>;
  summaries: Summaries;
  /** Loads the map on the first call. */
  places: () => Places;
  /** Null if none is configured: templates become the summaries. */
  model: SummaryModel | null;
  budget: SummaryBudget;
  acquireLock: AcquireLock;
  nowUs: () => number;
  random: () => number;
  log: Logger;
}

/** Before jitter; doubles with each failure. */
const firstPauseMs = 30_000;

/** With jitter. */
const pauseMsMax = 600_000;

/** Pause for faults that a person must fix in the settings. */
const settingsPauseMs = 900_000;

/** Maximum accepted `Retry-After`. */
const retryAfterMsMax = 3_600_000;

/** Minimum pause when a person waits, also if `Retry-After` is 0 or in the past. */
const attendedPauseMsMin = 1_000;

export type ServicePause = ReturnType<typeof createServicePause>;

/** Tracks pauses after faults. `isAttended`: a person waits, so a short `Retry-After` is used as it is. */
export function createServicePause(
  io: { nowUs: () => number; random: () => number },
  { isAttended = false }: { isAttended?: boolean } = {},
) {
  let failures = 0;
  let isRetryAfter = false;
  let pause = { fromUs: 0, untilUs: 0 };
  // A pause that begins in the future was set by a wrong clock, and is ignored.
  const untilUs = () => (io.nowUs() < pause.fromUs ? 0 : pause.untilUs);
  return {
    /** Returns the end of the pause; 0 without one. */
    untilUs,
    /** True from a failure to the next answer: only one request at a time is sent. */
    isProbing: () => failures > 0,
    /** True if `Retry-After` set the length of the current pause. */
    isRetryAfter: () => isRetryAfter,
    /** Records a failure of the service or the settings; returns the end of the pause. */
    noteFault: (scope: FaultScope, retryAfterMs: number | null) => {
      const ownMs =
        scope === 'settings'
          ? jittered(settingsPauseMs, io.random)
          : Math.min(pauseMsMax, jittered(firstPauseMs * 2 ** Math.min(failures, 10), io.random));
      const askedMs = Math.min(retryAfterMs ?? 0, retryAfterMsMax);
      failures += 1;
      isRetryAfter = isAttended && retryAfterMs !== null && scope === 'service';
      const pauseMs = isRetryAfter
        ? Math.max(askedMs, attendedPauseMsMin)
        : Math.max(askedMs, ownMs);
      const fromUs = io.nowUs();
      pause = { fromUs, untilUs: Math.max(untilUs(), fromUs + Math.round(pauseMs * 1000)) };
      return pause.untilUs;
    },
    /** Resets the failures. Ignored during a pause: its request was sent before the pause began. */
    noteAnswer: () => {
      if (io.nowUs() < untilUs()) return;
      failures = 0;
      pause = { fromUs: 0, untilUs: 0 };
    },
  };
}

/** Time for the index to read the last notifications of a window. */
const settlingUs = 60_000_000;

export function productJob(
  product: { productId: string; productName: string | null },
  trigger: { subscription: string | null; position: number | null },
  nowUs: number,
): NewSummaryJob {
  const { productId, productName } = product;
  const subject = productId.toLowerCase();
  return {
    kind: 'product',
    subject,
    productId,
    productName,
    ...trigger,
    scope: null,
    dueAtUs: nowUs,
  };
}

/** Due after the end of its window. */
export function digestJob(scope: DigestScope): NewSummaryJob {
  const { fromUs, untilUs, subscription, collection, filter, area } = scope;
  return {
    kind: 'digest',
    subject: JSON.stringify([subscription, collection, area, filter, fromUs, untilUs]),
    productId: null,
    productName: null,
    subscription,
    position: null,
    scope,
    dueAtUs: untilUs + settlingUs,
  };
}
