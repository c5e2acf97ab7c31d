/** Read and Ack of the queues of pull subscriptions, and their injected faults. */
import { isPush, type Subscription, type Subscriptions } from '../account.ts';
import type { Random } from '../clock.ts';
import { noQueue, type Queue, type Queues } from '../delivery/queue.ts';
import {
  type LiveServiceSettings,
  type QueueFault,
  queueFaults,
  takeNextFault,
} from '../live-settings.ts';
import {
  answerFaults,
  formedError,
  injectAnswerFault,
  type ServiceAnswer,
} from './service-answer.ts';
import type { Operation } from './subscription-api.ts';

export interface QueueServices {
  readonly subscriptions: Subscriptions;
  readonly queues: Queues;
  readonly liveSettings: LiveServiceSettings;
  /** Draws the faults of Reads and Acks. */
  readonly queueRandom: Random;
}

/** A call of a queue's operation. */
interface QueueCall extends QueueServices {
  /** Id of the subscription as in the path. */
  readonly id: string;
  readonly params: URLSearchParams;
  readonly requestId: string;
}

const topMax = 20;
const otherReader = ['otherReader'] as const;

/** Returns the operations of a queue's path below `/odata/v1` by method; null for another path. */
export function queueOperations(
  path: string,
  url: URL,
  services: QueueServices,
  requestId: string,
): Record<string, Operation> | null {
  const pattern = /^\/Subscriptions(?:\(|%28)([\dA-Za-z-]+)(?:\)|%29)\/(Read|Ack)$/;
  const [, id, name] = pattern.exec(path) ?? [];
  if (id === undefined) return null;
  const call = { ...services, id, params: url.searchParams, requestId };
  return name === 'Read' ? { GET: () => answerRead(call) } : { POST: () => answerAck(call) };
}

function answerRead(call: QueueCall): ServiceAnswer | 'cut' {
  const { id, queues, subscriptions, liveSettings, requestId } = call;
  const settings = liveSettings.current();
  const top = readTop(call);
  if (typeof top === 'object') return refused(top);
  const subscription = subscriptions.find(id);
  if (isPush(subscription)) return refusedPush(call);
  if (subscription.status === 'paused' && settings.readOfPaused === 'refuse') {
    return formedError(400, `Subscription with id ${id} is paused.`, settings, requestId);
  }
  const queue = queues.of(subscription);
  const fault = chooseFault(call, queue, queue.isLastReadOutdated() ? ['doubleRead'] : []);
  const read = () => (fault === 'doubleRead' ? queue.readAgain() : queue.read(top));
  return withFault(fault, () => ({ status: 200, body: read() }), call);
}

function answerAck(call: QueueCall): ServiceAnswer | 'cut' {
  const { id, params, queues, subscriptions } = call;
  const ackId = params.get('$ackid');
  if (ackId === null) {
    const loc = ['query', '$ackid'];
    return refused({ type: 'missing', loc, msg: 'Field required', input: null });
  }
  const subscription = subscriptions.find(id);
  if (isPush(subscription)) return refusedPush(call);
  const queue = queues.of(subscription);
  const isEmpty = queue.state().length === 0;
  const fault = chooseFault(call, queue, ['ackAnswerLost', ...(isEmpty ? [] : otherReader)]);
  if (fault === 'connectionCut') return 'cut';
  if (fault === 'otherReader') {
    queue.acknowledgeByOther(1);
    subscriptions.delivered(subscription);
  }
  const answer = withFault(fault, () => acknowledge(call, subscription, ackId), call);
  return fault === 'ackAnswerLost' ? 'cut' : answer;
}

/** Acknowledges entries. An Ack without effect does not change LastNotificationDate. */
function acknowledge(
  { queues, subscriptions, liveSettings, requestId }: QueueCall,
  subscription: Subscription,
  ackId: string,
): ServiceAnswer {
  const settings = liveSettings.current();
  const queue = queues.of(subscription);
  const acknowledged = queue.acknowledge(ackId);
  if (acknowledged !== null) subscriptions.delivered(subscription);
  else if (settings.ackUnknown === 'refuse') {
    return formedError(404, `Ack id ${ackId} not found.`, settings, requestId);
  }
  const { length, lengthMax } = queue.state();
  const body = {
    '@odata.context': '$metadata#Notification/$entity',
    AckMessagesNum: acknowledged ?? 0,
    CurrentQueueLength: length,
    MaxQueueLength: lengthMax,
  };
  return { status: 200, body };
}

/** Reads `$top`; returns a validation error if it is invalid. */
function readTop({ params, liveSettings }: QueueCall): number | object {
  const input = params.get('$top') ?? '1';
  const loc = ['query', '$top'];
  if (!/^\s*[+-]?\d+\s*$/.test(input)) {
    const msg = 'Input should be a valid integer, unable to parse string as an integer';
    return { type: 'int_parsing', loc, msg, input };
  }
  const top = Number(input);
  // The recorded errors of `$top` in product queries have an empty `error`.
  const ctx = { error: {} };
  if (top < 1) {
    const msg = 'Input should be greater than or equal to 1';
    return { type: 'greater_than_equal', loc, msg, input, ctx };
  }
  if (top <= topMax || liveSettings.current().readTopBeyondMax === 'clamp') {
    return Math.min(top, topMax);
  }
  const msg = `Input should be less than or equal to ${topMax}`;
  return { type: 'less_than_equal', loc, msg, input, ctx };
}

function refused(error: object): ServiceAnswer {
  return { status: 422, body: { detail: [error] } };
}

function refusedPush({ id, liveSettings, requestId }: QueueCall): ServiceAnswer {
  const settings = liveSettings.current();
  return formedError(settings.queueOfPushStatus, noQueue(id), settings, requestId);
}

/**
 * Chooses the fault of a call among the common faults and the given ones: first from `nextQueueCalls`, which counts
 * down, otherwise by probability. Drops the entry of `entriesDropped`.
 */
function chooseFault(
  { liveSettings, queueRandom }: QueueCall,
  queue: Queue,
  ownFaults: readonly QueueFault[],
): QueueFault | null {
  const { nextQueueCalls, queueFaults: shares } = liveSettings.current();
  const isEmpty = queue.state().length === 0;
  const possible = [...answerFaults, ...ownFaults, ...(isEmpty ? [] : ['entriesDropped'])];
  const applicable = queueFaults.filter((fault) => possible.includes(fault));
  const ordered = takeNextFault(applicable, nextQueueCalls, (counts) =>
    liveSettings.change({ nextQueueCalls: counts }),
  );
  // Draws every fault, so that neither a probability nor the queue shifts the draws of another.
  const drawn = queueFaults.filter((fault) => queueRandom.chance(shares[fault]));
  const fault = ordered ?? drawn.find((one) => applicable.includes(one)) ?? null;
  if (fault === 'entriesDropped') queue.drop(1);
  return fault;
}

/** Returns the answer, with its fault if that is one of the common faults. */
function withFault(
  fault: QueueFault | null,
  answer: () => ServiceAnswer,
  { liveSettings, requestId }: QueueCall,
): ServiceAnswer {
  const settings = liveSettings.current();
  const { queueRetryAfterSeconds: seconds } = settings;
  const common = answerFaults.find((one) => one === fault);
  if (common === undefined) return answer();
  return injectAnswerFault(common, answer, seconds, settings, requestId);
}
