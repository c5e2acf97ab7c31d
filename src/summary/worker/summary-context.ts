/** What the making of summaries needs of the rest of the program. */
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
  /** Loads the map with the first call. */
  places: () => Places;
  /** Null where none is configured: templates are all there is. */
  model: SummaryModel | null;
  budget: SummaryBudget;
  acquireLock: AcquireLock;
  nowUs: () => number;
  random: () => number;
  log: Logger;
}

/** Before jitter; it doubles with each failure. */
const firstPauseMs = 30_000;

/** With jitter. */
const pauseMsMax = 600_000;

/** Somebody has to put it right, which takes its time. */
const settingsPauseMs = 900_000;

/** A service that asks for more is asked again after this all the same. */
const retryAfterMsMax = 3_600_000;

/** The least for a person who waits, also where `Retry-After` is 0 or in the past. */
const attendedPauseMsMin = 1_000;

export type ServicePause = ReturnType<typeof createServicePause>;

/** `isAttended`: a person waits for the work, so that a short `Retry-After` leads to a short pause. */
export function createServicePause(
  io: { nowUs: () => number; random: () => number },
  { isAttended = false }: { isAttended?: boolean } = {},
) {
  let failures = 0;
  let isRetryAfter = false;
  let pause = { fromUs: 0, untilUs: 0 };
  // A pause that begins in the future was begun by a clock that ran ahead: it is over.
  const untilUs = () => (io.nowUs() < pause.fromUs ? 0 : pause.untilUs);
  return {
    /** Until when nothing is sent; 0 when nothing keeps it. */
    untilUs,
    /** True after a failure, until an answer came: then one request at a time is sent. */
    isProbing: () => failures > 0,
    /** Whether the current pause has the length that the service asked for (`Retry-After`). */
    isRetryAfter: () => isRetryAfter,
    /** Notes a failure that was not a job's own; returns until when nothing is sent. */
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
    /** Ends the failures. In a pause it does nothing: that answer was on its way before the pause began. */
    noteAnswer: () => {
      if (io.nowUs() < untilUs()) return;
      failures = 0;
      pause = { fromUs: 0, untilUs: 0 };
    },
  };
}

/** What belongs to no known collection, by its name, has digests of its own. */
export const noCollection = 'OTHER';

/** Receipts of the last moment are indexed by then. */
const settlingUs = 60_000_000;

export function productJob(
  product: { productId: string; productName: string | null },
  calledBy: { subscription: string | null; position: number | null },
  nowUs: number,
): NewSummaryJob {
  const { productId, productName } = product;
  const subject = productId.toLowerCase();
  return {
    kind: 'product',
    subject,
    productId,
    productName,
    ...calledBy,
    scope: null,
    dueAtUs: nowUs,
  };
}

/** Due when its window is over. */
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
