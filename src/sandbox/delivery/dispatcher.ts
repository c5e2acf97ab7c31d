/** Delivers push notifications to the users' endpoints, like the catalogue: attempts, retries, and injected faults. */
import type { IncomingMessage } from 'node:http';
import * as https from 'node:https';
import { setImmediate } from 'node:timers/promises';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import type { EndpointAddress, PushSubscription } from '../account.ts';
import { createRandom, type Random, type SandboxClock } from '../clock.ts';
import type { CatalogueProduct } from '../products/product-generator.ts';
import type { Faults, LiveFaults } from '../settings.ts';
import {
  createIdentify,
  type DeliveryEntry,
  type DeliveryRecord,
  isSuccess,
  type NotificationEvent,
  planShape,
  pushBody,
} from './notification.ts';

export interface DispatcherOptions {
  readonly record: DeliveryRecord;
  readonly clock: SandboxClock;
  readonly faults: LiveFaults;
  /** 32-bit integer; determines bodies and faults. */
  readonly seed: number;
  /** Stops the dispatcher: open notifications are abandoned and stay pending in the record. */
  readonly signal: AbortSignal;
  /** Certificate authorities trusted in addition to Node's and the system's, PEM. */
  readonly trustedCaPems: readonly string[];
  /** Delays before the second and later attempts. */
  readonly retryDelaysMs: readonly number[];
  /** Called after each successful delivery. */
  readonly onDelivered: (subscription: PushSubscription) => void;
  /** Called once per push notification when it is delivered or lost. */
  readonly onSettled?: ((entry: DeliveryEntry) => void) | undefined;
}

/** A notification that is being delivered. */
interface Task {
  readonly sequence: number;
  readonly body: Buffer;
  readonly plan: ReturnType<typeof planDelivery>;
  readonly subscription: PushSubscription;
  readonly agent: https.Agent;
}

/** Maximum number of concurrent connections of one subscription. */
const socketsMax = 8;

const answerTimeoutMs = 30_000;

const closed = 'not sent: the sandbox was closed';

export type Dispatcher = ReturnType<typeof createDispatcher>;

/** Creates a dispatcher. Reads the certificate authorities at the first delivery. */
export function createDispatcher(options: DispatcherOptions) {
  const { record, faults, signal, retryDelaysMs } = options;
  /** Number of notifications and duplicates that are not settled, and their attempts in progress. */
  let open = 0;
  const attempts = new Set<Promise<unknown>>();
  const recipientOf = createRecipients(options);
  /** Resolves when the next open notification ends: one promise for all waits, as thousands may be open. */
  let ended = Promise.withResolvers<void>();
  let failure: { error: unknown } | null = null;
  const start = async (delivered: Promise<void>) => {
    open += 1;
    await delivered.catch((error: unknown) => {
      failure ??= { error };
    });
    open -= 1;
    ended.resolve();
    ended = Promise.withResolvers();
  };
  const throwFailure = () => {
    if (failure !== null) throw failure.error;
  };

  return {
    /** Starts a delivery without waiting; returns its sequence in the record. */
    send: (
      subscription: PushSubscription,
      event: NotificationEvent,
      product: CatalogueProduct,
      atMs: number,
    ): number => {
      const { identify, random, agent } = recipientOf(subscription);
      const rates = faults.current();
      const shape = planShape(rates, random);
      const key = identify({ event, product, atMs, shape });
      const body = pushBody(key, product, shape);
      const sequence = record.open(key);
      const plan = planDelivery(rates, random, retryDelaysMs.length + 1);
      const task = { sequence, body, plan, subscription, agent };
      const makeAttempt: MakeAttempt = (planned) => {
        const made = attempt(task, options, planned).finally(() => attempts.delete(made));
        attempts.add(made);
        return made;
      };
      void start(deliver(task, options, makeAttempt));
      return sequence;
    },
    /** Resolves when fewer than `openMax` notifications are open. Like `drained` and `quiet`, rejects after a fault here. */
    capacity: async (openMax: number) => {
      while (!signal.aborted && open >= openMax) await ended.promise;
      throwFailure();
    },
    /** Resolves when no notification or duplicate is open. */
    drained: async () => {
      while (open > 0) await ended.promise;
      throwFailure();
    },
    /** Resolves when no attempt is running: all open notifications wait, e.g. for a retry. */
    quiet: async () => {
      do {
        await Promise.all(attempts);
        // Lets deliveries continue that have just become due, or got an answer.
        await setImmediate();
      } while (attempts.size > 0);
      throwFailure();
    },
  };
}

/** Creates the lookup of a subscription's connections, identities and draws. */
function createRecipients({ seed, trustedCaPems, signal }: DispatcherOptions) {
  const create = ({ id: subscriptionId }: PushSubscription) => {
    const random = createRandom((seed ^ Number.parseInt(subscriptionId.slice(0, 8), 16)) | 0);
    // Created once: parsing over a hundred authorities costs more than a handshake.
    secureContext ??= createSecureContext({ ca: trustedAuthorities(trustedCaPems) });
    const agent = new https.Agent({
      ...{ keepAlive: true, maxSockets: socketsMax, secureContext },
      // Explicit, because an environment variable could otherwise disable the checks.
      rejectUnauthorized: true,
    });
    signal.addEventListener('abort', () => agent.destroy(), { once: true });
    const identify = createIdentify(subscriptionId, createRandom(~seed));
    return { identify, random, agent };
  };
  let secureContext: SecureContext | undefined;
  const recipients = new WeakMap<PushSubscription, ReturnType<typeof create>>();
  return (subscription: PushSubscription) => {
    const recipient = recipients.get(subscription) ?? create(subscription);
    recipients.set(subscription, recipient);
    return recipient;
  };
}

function trustedAuthorities(trustedCaPems: readonly string[]): string[] {
  const authorities = (['default', 'system'] as const).flatMap((type) => getCACertificates(type));
  return [...new Set([...authorities, ...trustedCaPems])];
}

/** Delay of an injected duplicate or late attempt, in ms. */
const delayMs = [50, 500] as const;

/** Draws everything at once, so that the timing of answers does not change the results of a seed. */
function planDelivery(faults: Faults, random: Random, attempts: number) {
  const lost = random.chance(faults.lost);
  return {
    /** Delays of the first attempt, and of a second delivery after the first succeeded; null: none. */
    startMs: random.chance(faults.outOfOrder) ? random.integer(...delayMs) : null,
    duplicateMs: random.chance(faults.duplicate) ? random.integer(...delayMs) : null,
    attempts: Array.from({ length: attempts }, () => ({
      connectionFails: random.chance(faults.connectionFails) || lost,
      answerLost: random.chance(faults.answerLost),
    })),
  };
}

/** Makes one attempt; resolves with the failure, or null for a success. */
type MakeAttempt = (planned: Task['plan']['attempts'][number]) => Promise<string | null>;

async function deliver(
  { sequence, plan }: Task,
  { record, clock, signal, retryDelaysMs, onSettled }: DispatcherOptions,
  makeAttempt: MakeAttempt,
): Promise<void> {
  const idleFor = (delayMs: number) => clock.waitUntil(clock.now() + delayMs, signal);
  if (plan.startMs !== null) await idleFor(plan.startMs);
  let failure: string | null = closed;
  for (const [index, planned] of plan.attempts.entries()) {
    if (index > 0 && !(await idleFor(retryDelaysMs[index - 1] ?? 0))) break;
    failure = await makeAttempt(planned);
    if (failure === null) break;
  }
  // Closing aborts attempts; the endpoint is not the cause, so these notifications are not lost.
  if (failure !== null && signal.aborted) return;
  const reason = failure && `${plan.attempts.length} attempts failed; last failure: ${failure}`;
  const entry = record.settle(sequence, reason);
  onSettled?.(entry);
  if (failure !== null || plan.duplicateMs === null) return;
  if (await idleFor(plan.duplicateMs)) {
    await makeAttempt({ connectionFails: false, answerLost: false });
  }
}

/** Makes and records one attempt; returns the failure, or null for a success. */
async function attempt(
  task: Task,
  { record, signal, onDelivered }: DispatcherOptions,
  planned: Task['plan']['attempts'][number],
): Promise<string | null> {
  if (signal.aborted) return closed;
  const { subscription } = task;
  const sent = planned.connectionFails
    ? 'connection failed (injected by the sandbox)'
    : // The current address, so that an edit applies between two attempts.
      await post(subscription.address, task, signal).catch(failureOf);
  record.addAttempt(task.sequence, typeof sent === 'number' ? sent : null);
  if (typeof sent !== 'number') return sent;
  if (planned.answerLost) return 'answer lost (injected by the sandbox)';
  if (!isSuccess(sent)) return `the endpoint answered ${sent}`;
  onDelivered(subscription);
  return null;
}

/** Sends a body once; resolves with the status of a complete answer. Does not follow redirects. */
function post(
  { endpoint, username, password }: EndpointAddress,
  { body, agent }: Task,
  signal: AbortSignal,
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const pair = Buffer.from(`${username ?? ''}:${password ?? ''}`).toString('base64');
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': body.length,
    ...(username === null && password === null ? {} : { Authorization: `Basic ${pair}` }),
  };
  const request = https.request(endpoint, { method: 'POST', agent, headers, signal });
  let timer: NodeJS.Timeout | undefined;
  request.on('socket', () => {
    const error = new Error(`no complete answer within ${answerTimeoutMs} ms`);
    timer = setTimeout(() => request.destroy(error), answerTimeoutMs);
  });
  request.on('response', (response: IncomingMessage) => {
    response.on('end', () => resolve(response.statusCode ?? 0)).on('error', reject);
    response.resume();
  });
  request.on('error', reject);
  request.on('close', () => clearTimeout(timer));
  request.end(body);
  return promise;
}

function failureOf(error: Error & { code?: string; errors?: readonly Error[] }): string {
  // A host with several addresses fails with an empty message and one error per address.
  const message = error.message || (error.errors ?? []).map((one) => one.message).join('; ');
  return error.code ? `${error.code}: ${message}` : message;
}
