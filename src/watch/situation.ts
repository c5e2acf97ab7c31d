/** What the judges of subscriptions rest on, read once in each round. */
import type { Gap, Registration } from '../domain/administration.ts';
import type { Alert, AlertKind } from '../domain/alerts.ts';
import type { Definition, HourCoverage, Uptime } from '../domain/completeness.ts';
import { hourOf } from '../domain/coverage-report.ts';
import { type PushMemory, refreshPushMemory, rememberedUs } from './push-memory.ts';
import type { Arrivals } from './silence/learn-rates.ts';
import { clipped, type Span, without } from './spans.ts';
import type { WatchWorld } from './watch-world.ts';

export interface Situation {
  nowUs: number;
  registrations: readonly Registration[];
  definitions: readonly Definition[];
  gaps: readonly Gap[];
  uptimes: readonly Uptime[];
  /** Of what came before, nothing can be said, as it was pruned; 0 where nothing ever was. */
  wholeSinceUs: number;
  lasting: readonly Alert[];
  memory: PushMemory;
  /** Last delivery by a subscription's name. */
  deliveredAtUs: ReadonlyMap<string, number>;
}

/** More alerts than these do not last at a time: subscriptions and sinks are few. */
const lastingMax = 1_000;

/** Rejects with `unavailable`. */
export async function readSituation(
  { administration, completeness, alerts, nowUs }: WatchWorld,
  memory: PushMemory,
): Promise<Situation> {
  const now = nowUs();
  const registrations = await administration.registrations();
  const names = new Set(registrations.map(({ name }) => name));
  await refreshPushMemory(memory, completeness, { names, nowUs: now });
  const deliveredAtUs = new Map<string, number>();
  for (const { subscription, lastAtUs } of await administration.deliveryMarks()) {
    // A mark of a clock that was ahead says nothing.
    if (subscription === null || lastAtUs > now) continue;
    deliveredAtUs.set(subscription, Math.max(lastAtUs, deliveredAtUs.get(subscription) ?? 0));
  }
  return {
    nowUs: now,
    registrations,
    definitions: await completeness.definitions(),
    gaps: await administration.gaps(),
    uptimes: await completeness.uptimes(now - rememberedUs),
    wholeSinceUs: await completeness.wholeSinceUs(),
    lasting: await alerts.alerts({ all: false, limit: lastingMax }),
    memory,
    deliveredAtUs,
  };
}

/** Since this program started; without a sign of its life, for long. */
export function upForUs({ uptimes, nowUs }: Pick<Situation, 'uptimes' | 'nowUs'>): number {
  const up = uptimes.at(-1);
  return up === undefined ? Number.POSITIVE_INFINITY : nowUs - up.fromUs;
}

/** The alert that lasts, if one does. */
export function lastingAlert(
  { lasting }: Pick<Situation, 'lasting'>,
  kind: AlertKind,
  subject: string,
): Alert | undefined {
  return lasting.find((alert) => alert.kind === kind && alert.subject === subject);
}

/** Whether pushes of it are to be expected now. */
export function runs(registration: Registration): boolean {
  const { status, subscriptionId, pausedSeenAtUs, unfinished } = registration;
  return status === 'running' && subscriptionId !== null && pausedSeenAtUs === null && !unfinished;
}

/** When its pushes could have come and would be here: we were up, it ran, and it asked for what it asks for now. */
export function watchedSpans(
  { definitions, gaps, uptimes, wholeSinceUs, nowUs }: Situation,
  subscription: string,
): Span[] {
  const definition = definitions.findLast((one) => one.subscription === subscription);
  if (definition === undefined) return [];
  const fromUs = Math.max(definition.fromUs, nowUs - rememberedUs, wholeSinceUs);
  const notSent = gaps
    .filter((gap) => gap.subscription === subscription)
    .map((gap) => ({ fromUs: gap.fromUs, toUs: gap.toUs ?? nowUs }));
  return without(clipped(uptimes, fromUs, nowUs), clipped(notSent, fromUs, nowUs));
}

export function arrivalsOf({ memory }: Situation, subscription: string): Map<number, Arrivals> {
  return memory.arrivals.get(subscription) ?? new Map();
}

/** Compared hours since the subscription began, those of all events, in no order. */
export function coverageOf(
  { memory, wholeSinceUs, definitions }: Situation,
  subscription: string,
): HourCoverage[] {
  const began = definitions.find((one) => one.subscription === subscription);
  const sinceUs = Math.max(wholeSinceUs, hourOf(began?.fromUs ?? 0));
  const hours = [...(memory.coverage.get(subscription)?.values() ?? [])];
  return hours.filter((hour) => hour.hourUs >= sinceUs);
}
