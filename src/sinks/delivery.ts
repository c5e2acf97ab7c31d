/** Hands over what waits for one sink: so many at a time, in order within each product. */
import { formatDateUs } from '../domain/dates.ts';
import { jittered } from '../domain/jitter.ts';
import {
  type SinkDefinition,
  type SinkItem,
  type Sinks,
  sinkRetryDelayMaxMs,
  sinkWaitingMax,
} from '../domain/sinks.ts';
import { type AttemptAnswer, attempt, createReadBody } from './attempt.ts';
import { compileWants } from './document.ts';
import { createSinkHealth, type SinkHealth } from './health.ts';
import type { SinkWorld, Target } from './sink.ts';

/** After a failure of the store: the disk may be full. */
const storeRetryMs = 10_000;

interface HandingOver {
  /**
   * Starts what is due, as far as there is room. Resolves with how long to wait before there may be more.
   * Rejects with `unavailable`.
   */
  startDue(): Promise<number>;
  /** Resolves when nothing is on its way. */
  idle(): Promise<void>;
}

interface HandingOverOptions {
  definition: SinkDefinition;
  world: SinkWorld;
  target: Target;
  /** Called when there is room again. */
  onRoom: () => void;
  /** Gives up what is on its way: it is handed over again later. */
  signal: AbortSignal;
}

/** The longest wait: other programs add items, too. */
const waitMsMax = 1_000;

/** Between two notices that a sink is down: some items that make it look so must not fill the log. */
const noticePauseUs = 60_000_000;

/**
 * An item keeps its place until its end is on disk. What is on its way when the program is killed is handed
 * over again by the next one, and nothing else.
 */
export function createHandingOver(options: HandingOverOptions): HandingOver {
  const { definition, world, onRoom } = options;
  const { name: sink, concurrency } = definition;
  const { sinks, nowUs } = world;
  const health = createSinkHealth(world);
  const finish = createFinish(options, health);
  /** By product: a dead letter that is tried again may be due while a later one is on its way. */
  const onTheirWay = new Map<string, Promise<void>>();

  const start = (item: SinkItem) => {
    const product = productOf(item);
    if (onTheirWay.has(product)) return;
    const ended = finish(item).then(() => {
      onTheirWay.delete(product);
      onRoom();
    });
    onTheirWay.set(product, ended);
  };
  const due = async (limit: number) => {
    // One whose end is written meanwhile may still be in the answer.
    const started = new Set(onTheirWay.keys());
    const items = await sinks.due({ sink, nowUs: nowUs(), limit });
    return items.filter((item) => !started.has(productOf(item)));
  };
  const waitMs = async () => {
    const nextUs = await sinks.nextDueAtUs(sink);
    const untilUs = Math.max(nextUs ?? Number.POSITIVE_INFINITY, health.untilUs());
    // What is due already and was not started waits for room, and is told of it.
    const ms = Math.ceil((untilUs - nowUs()) / 1000);
    return ms <= 0 ? waitMsMax : Math.min(ms, waitMsMax);
  };
  return {
    startDue: async () => {
      if (health.untilUs() > nowUs()) return waitMs();
      if (health.isDown()) {
        const probe = onTheirWay.size === 0 ? probeOf(await due(sinkWaitingMax)) : undefined;
        if (probe !== undefined) start(probe);
        return waitMs();
      }
      if (onTheirWay.size >= concurrency) return waitMsMax;
      // Those on their way, or others of their products, are due as well: one of each product.
      const free = concurrency - onTheirWay.size;
      for (const item of (await due(concurrency)).slice(0, free)) start(item);
      return waitMs();
    },
    idle: async () => {
      await Promise.all(onTheirWay.values());
    },
  };
}

/** The case of a product's id does not tell two products apart. */
const productOf = ({ productId }: SinkItem) => productId.toLowerCase();

/** Makes what hands one item over and writes down what came of it. It never rejects. */
function createFinish(options: HandingOverOptions, health: SinkHealth) {
  const { definition, world, signal } = options;
  const { nowUs, pause, logger } = world;
  const sink = definition.name;
  const afterAnswer = createAfterAnswer(definition, health, world);
  const stillWants = createStillWants(definition, world);
  const settle = createSettling(world.sinks);
  const readBody = createReadBody(world.log);
  const tell = createHealthNotice(sink, world, health);

  /** Null for one that was given up. */
  const settlementOf = async (item: SinkItem): Promise<Settlement | null> => {
    if (!(await stillWants(item))) {
      const { id, position } = item;
      logger.info({ sink, item: id, position }, 'a sink does not want an item any more; forgotten');
      return { id, outcome: 'taken' };
    }
    const startedAtUs = nowUs();
    const answer = await attempt(item, definition, { ...world, ...options, readBody });
    if (answer === null) {
      return { id: item.id, outcome: 'dead', error: 'Its notification is not in the log.' };
    }
    if (signal.aborted && answer.kind !== 'taken') return null;
    const settlement = afterAnswer.settlementOf(item, answer, startedAtUs);
    tell(settlement);
    return settlement;
  };
  return async (item: SinkItem): Promise<void> => {
    try {
      const settlement = await settlementOf(item);
      if (settlement === null) return;
      // It must not be handed over again because the disk is full just now.
      while (!(await isWritten(settlement))) {
        await pause(storeRetryMs, signal);
        if (signal.aborted) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      logger.error({ sink, err: error }, 'an item of a sink cannot be read; it is tried again');
      await pause(storeRetryMs, signal);
    }
  };

  async function isWritten(settlement: Settlement): Promise<boolean> {
    try {
      await settle(settlement);
      return true;
    } catch (error) {
      logger.error({ sink, err: error }, 'what a sink has taken cannot be noted; tried again');
      return false;
    }
  }
}

/**
 * While a sink is down: one that has not failed yet, as the others may have failed by their own fault; else the
 * one that has been due for the longest time.
 */
function probeOf(items: readonly SinkItem[]): SinkItem | undefined {
  return (
    items.find(({ error }) => error === null) ??
    items.toSorted((one, other) => one.dueAtUs - other.dueAtUs)[0]
  );
}

/** Tells the log when a sink goes down, and when it answers again; and of dead letters. */
function createHealthNotice(
  sink: string,
  { logger, nowUs }: Pick<SinkWorld, 'logger' | 'nowUs'>,
  health: SinkHealth,
): (settlement: Settlement) => void {
  let isTold = false;
  let toldAtUs = 0;
  return (settlement) => {
    if (settlement.outcome === 'dead') {
      const { id: item, error: reason } = settlement;
      logger.warn({ sink, item, reason }, 'a sink has refused an item for good');
    }
    if (!health.isDown()) {
      if (isTold) logger.info({ sink }, 'a sink takes items again');
      isTold = false;
    } else if (!isTold && Math.abs(nowUs() - toldAtUs) >= noticePauseUs) {
      isTold = true;
      toldAtUs = nowUs();
      const reason = 'error' in settlement ? settlement.error : null;
      const until = formatDateUs(health.untilUs());
      logger.warn({ sink, reason, until }, 'a sink takes nothing; its items wait');
    }
  };
}

/** Resolves when it is on disk. Rejects with `unavailable`. */
type Settle = (settlement: Settlement) => Promise<void>;

/** What comes while one transaction is being written shares the next one. */
function createSettling({ settle }: Pick<Sinks, 'settle'>): Settle {
  let next: { settlements: Settlement[]; written: Promise<void> } | null = null;
  let latest: Promise<unknown> = Promise.resolve();
  return (settlement) => {
    if (next === null) {
      const settlements: Settlement[] = [];
      const written = latest.then(() => {
        next = null;
        return settle(settlements);
      });
      latest = written.catch(() => undefined);
      next = { settlements, written };
    }
    next.settlements.push(settlement);
    return next.written;
  };
}

/** Rejects with `unavailable` when the store cannot be read. */
type StillWants = (item: SinkItem) => Promise<boolean>;

/**
 * What this program has queued was judged by the same rules, and is not looked at again; nor is what a replay
 * has queued, which somebody has asked for. One that cannot be judged passes: handing it over fails, and says why.
 * Throws `invalid` for a filter that is none.
 */
function createStillWants(
  definition: SinkDefinition,
  { sinks, log }: Pick<SinkWorld, 'sinks' | 'log'>,
): StillWants {
  const wants = compileWants(definition, log);
  let lastBefore: number | null = null;

  /** Dead letters may be tried again, and count. Ids only grow. */
  const newestId = async () => {
    let newest = 0;
    for (const state of ['waiting', 'dead'] as const) {
      for await (const { id } of sinks.items({ sink: definition.name, state, limit: 1 })) {
        newest = Math.max(newest, id);
      }
    }
    return newest;
  };
  return async ({ id, position, replayId }) => {
    if (replayId !== null) return true;
    lastBefore ??= await newestId();
    if (id > lastBefore) return true;
    const bounds = { afterPosition: position - 1, beforePosition: position + 1, limit: 1 };
    for await (const row of log.find(bounds)) {
      try {
        return await wants(row);
      } catch {
        return true;
      }
    }
    return true;
  };
}

/** What becomes of one item. */
type Settlement = Parameters<Sinks['settle']>[0][number];

/** Times that an item may fail while others are taken: each one more is the item's own fault. */
const strikesMax = 20;

/** Waits, before jitter. After a refusal it grows fourfold each time, after another failure twofold. */
const refusalWaitMs = 5_000;

const failureWaitMs = 2_000;

const failureWaitMsMax = 300_000;

/** What is remembered of an item that failed, until it was taken or the program ends. */
interface Failures {
  count: number;
  /** Those before which others were taken since the one before. */
  strikes: number;
  /** How many had been taken at the last one. */
  takenBefore: number;
}

interface AfterAnswer {
  /** Notes the answer for the sink, too. */
  settlementOf(item: SinkItem, answer: AttemptAnswer, startedAtUs: number): Settlement;
}

/**
 * A refusal is an answer: it counts, until the item is a dead letter, and it shows that the sink is up. Any other
 * failure may be the sink's own and does not count; but one item that has failed `strikesMax` times while others
 * were taken counts as refused with each further such time, as it would keep its product for ever.
 */
export function createAfterAnswer(
  { attemptsMax }: Pick<SinkDefinition, 'attemptsMax'>,
  health: SinkHealth,
  { nowUs, random }: { nowUs: () => number; random: () => number },
): AfterAnswer {
  const failed = new Map<number, Failures>();
  let taken = 0;

  /** While nothing is taken, no failure is a strike: it is the sink that is down. */
  const noteFailure = (id: number): Failures & { isOwnFault: boolean } => {
    const before = failed.get(id) ?? { count: 0, strikes: 0, takenBefore: taken };
    const isStrike = taken > before.takenBefore;
    const strikes = before.strikes + Number(isStrike);
    const failures = { count: before.count + 1, strikes, takenBefore: taken };
    failed.set(id, failures);
    return { ...failures, isOwnFault: isStrike && strikes >= strikesMax };
  };
  const inMs = (ms: number) => nowUs() + Math.round(jittered(ms * 1000, random));

  const afterRefusal = ({ id, attempts }: SinkItem, error: string): Settlement => {
    if (attempts + 1 >= attemptsMax) {
      failed.delete(id);
      return { id, outcome: 'dead', error };
    }
    const waitMs = Math.min(sinkRetryDelayMaxMs, refusalWaitMs * 4 ** Math.min(attempts, 10));
    return { id, outcome: 'postponed', error, nextTryAtUs: inMs(waitMs), counts: true };
  };
  return {
    settlementOf: (item, answer, startedAtUs) => {
      const { id } = item;
      if (answer.kind === 'taken') {
        taken += 1;
        failed.delete(id);
        health.noteAnswer();
        return { id, outcome: 'taken', deliveredAtUs: nowUs() };
      }
      const { kind, reason: error } = answer;
      if (kind === 'refused') health.noteAnswer();
      if (kind === 'refused' || kind === 'failed') return afterRefusal(item, error);
      const isMisconfigured = kind === 'misconfigured';
      const retryAfterMs = kind === 'unavailable' ? answer.retryAfterMs : null;
      health.noteFailure({ id, startedAtUs, isMisconfigured, retryAfterMs });
      const { count, isOwnFault } = noteFailure(id);
      if (isOwnFault) return afterRefusal(item, error);
      const waitMs = Math.min(failureWaitMsMax, failureWaitMs * 2 ** Math.min(count - 1, 10));
      const nextTryAtUs = Math.max(health.untilUs(), inMs(waitMs));
      return { id, outcome: 'postponed', error, counts: false, nextTryAtUs };
    },
  };
}
