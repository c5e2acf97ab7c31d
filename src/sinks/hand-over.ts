/** Hands over what waits for one sink: so many at a time, in order within each product. */
import { formatDateUs } from '../domain/notification-date.ts';
import { type SinkDefinition, type SinkItem, sinkWaitingMax } from '../domain/sinks.ts';
import { createAfterAnswer, type Settlement } from './after-answer.ts';
import { attempt, createReadBody } from './attempt.ts';
import { createStillWants } from './hand-over-wanted.ts';
import { createSettling } from './settling.ts';
import { createSinkHealth, type SinkHealth } from './sink-health.ts';
import type { SinkWorld } from './sink-world.ts';
import type { Target } from './target.ts';

/** After a failure of the store: the disk may be full. */
const storeRetryMs = 10_000;

export interface HandingOver {
  /**
   * Starts what is due, as far as there is room. Resolves with how long to wait before there may be more.
   * Rejects with `unavailable`.
   */
  startDue(): Promise<number>;
  /** Resolves when nothing is on its way. */
  idle(): Promise<void>;
}

export interface HandingOverOptions {
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
