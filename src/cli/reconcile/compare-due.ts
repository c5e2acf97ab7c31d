/** Compares what is due, one kind of events of one subscription after the other: one's trouble is not another's. */
import { type DueTasks, dueTasks } from '../../admin/reconcile/due-windows.ts';
import { type ReconcileTask, reconcile, type TaskReport } from '../../admin/reconcile/reconcile.ts';
import { errorText, isAppError } from '../../domain/app-error.ts';
import {
  horizonUs,
  hourUs,
  secondLookUs,
  settlingUs,
  type Uptime,
} from '../../domain/completeness.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';
import type { Store } from '../../store/store.ts';
import { pause } from '../until-aborted.ts';
import { createKindRound, type KindRound, type RoundPart } from './kind-round.ts';
import type { OpenedListing } from './open-listing.ts';

export interface ReconcileParts {
  store: Pick<Store, 'administration' | 'completeness' | 'lastPosition'>;
  products: Products;
  log: Logger;
}

export interface DueComparison extends OpenedListing {
  /** Our own clock, by which uptimes are written. */
  ownNowUs: () => number;
  /** When what may have been missed while we were away was looked at last; null since the start never. */
  looked: { atUs: number | null };
  signal: AbortSignal;
}

/** What ended just before a look, or was told while it ran, is looked at once more. */
const lookedAgainUs = 5 * 60_000_000;

/** How much of what was due has been compared; `all` also where nothing was. */
export type RoundOutcome = 'all' | 'some' | 'none';

/** How often one kind's comparison may fail in a round. */
const failuresMax = 5;

/**
 * Tells of each kind that could not be compared, and goes on with the others; behind an hour that the catalogue
 * fails at it goes on with what is later, in the same round. Rejects with the signal's reason, with `conflict`
 * when another program is in the way, and as a bug does.
 */
export async function compareDue(parts: ReconcileParts, how: DueComparison): Promise<RoundOutcome> {
  const startedAtUs = how.nowUs();
  const kinds = byKind(await whatIsDue(parts, how, startedAtUs));
  const failed = new Map<KindRound, unknown>();
  let isAnswered = false;
  // Every failure may take minutes: a catalogue that answers nobody gets two tries of one kind, and one of each other.
  const isToTry = (kind: KindRound) => {
    const most = isAnswered ? failuresMax : kind === kinds[0] ? 2 : 1;
    return kind.failures() < most && !isFinal(failed.get(kind));
  };
  const goOn = async (kind: KindRound) => {
    for (let part = kind.next(); part !== null && isToTry(kind); part = kind.next()) {
      let reachedUs = 0;
      try {
        await compare(parts, how, part, (upToUs) => {
          isAnswered = true;
          reachedUs = upToUs;
        });
        kind.done();
      } catch (error) {
        if (!isOfThisKind(error) || how.signal.aborted) throw error;
        failed.set(kind, error);
        if (!isFinal(error)) kind.failed(reachedUs);
      }
    }
  };
  // Twice: one that was given up may go on when the catalogue has answered a question of another kind since.
  for (const kind of [...kinds, ...kinds]) await goOn(kind);
  for (const [kind, error] of failed) tellFailure(error, fieldsOf(kind), parts.log);
  // What could not be looked at is looked at again, with the others.
  if (kinds.every((kind) => kind.hasLooked())) how.looked.atUs = startedAtUs - lookedAgainUs;
  if (failed.size === 0) return 'all';
  return kinds.some((kind) => kind.hasProgress()) ? 'some' : 'none';
}

/** True for what would be the same in another hour. */
function isFinal(error: unknown): boolean {
  return error !== undefined && !isAppError(error, 'unavailable');
}

/** Times as in ISO 8601, 4.4: begin/end. */
function fieldsOf({ kind, left }: KindRound) {
  const notCompared = left().map(({ fromUs, toUs }) => `${shortDate(fromUs)}/${shortDate(toUs)}`);
  return { ...kind, notCompared };
}

function shortDate(us: number): string {
  return formatDateUs(us).replace(/\.0+Z$/, 'Z');
}

function byKind({ earlyLooks, tasks, secondLooks }: DueTasks): KindRound[] {
  const key = ({ subscription, event }: KindRound['kind']) => `${subscription} ${event}`;
  const kinds = new Map(
    [...earlyLooks, ...tasks, ...secondLooks].map(({ subscription, event }) => {
      const kind = { subscription, event };
      return [key(kind), kind];
    }),
  );
  return [...kinds.values()].map((kind) => {
    const own = (some: readonly ReconcileTask[]) => some.filter((task) => key(task) === key(kind));
    const due = { earlyLooks: own(earlyLooks), tasks: own(tasks), secondLooks: own(secondLooks) };
    return createKindRound(kind, due);
  });
}

function isOfThisKind(error: unknown): boolean {
  return isAppError(error) && error.code !== 'cancelled' && error.code !== 'conflict';
}

export function tellFailure(
  error: unknown,
  fields: { subscription?: string; event?: string; notCompared?: readonly string[] },
  log: Logger,
): void {
  const message = 'the log could not be compared with the catalogue; tried again later';
  if (isAppError(error) && error.code !== 'internal') {
    log.warn({ ...fields, reason: errorText(error), details: error.details }, message);
  } else log.error({ ...fields, err: error }, message);
}

async function whatIsDue(
  { store }: ReconcileParts,
  { looked, ownNowUs }: DueComparison,
  nowUs: number,
): Promise<DueTasks> {
  const { administration, completeness } = store;
  const sinceUs = nowUs - horizonUs;
  const aheadUs = nowUs - ownNowUs();
  const [definitions, registrations, coverage, uptimes, gaps, wholeUs] = await Promise.all([
    completeness.definitions(),
    administration.registrations(),
    completeness.coverage({ sinceUs, untilUs: nowUs }),
    completeness.uptimes(sinceUs - aheadUs),
    administration.gaps(),
    completeness.wholeSinceUs(),
  ]);
  // A look that lies ahead was dated by a clock that was: before the first answer it is our own.
  const lookedAtUs = looked.atUs !== null && looked.atUs <= nowUs ? looked.atUs : null;
  // A push of the last hour is dated by our own clock, which may be behind.
  const wholeSinceUs = wholeUs + Math.max(0, aheadUs);
  const times = { nowUs, settlingUs, secondLookUs, horizonUs, lookedAtUs, wholeSinceUs };
  const shifted = uptimes.map((one) => shift(one, aheadUs));
  return dueTasks({ definitions, registrations, coverage, uptimes: shifted, gaps, ...times });
}

function shift({ fromUs, toUs }: Uptime, byUs: number): Uptime {
  return { fromUs: fromUs + byUs, toUs: toUs + byUs };
}

async function compare(
  { store, products, log }: ReconcileParts,
  { listing, nowUs, ownNowUs, signal }: DueComparison,
  { tasks, coverage }: RoundPart,
  onReached: (upToUs: number) => void,
): Promise<void> {
  const [first] = tasks;
  if (first === undefined) return;
  const { completeness } = store;
  const { subscription, event } = first;
  const walk = { subscription, event, ...extentOf(tasks) };
  const isLong = walk.hours > longHours;
  if (isLong) log.info(walk, 'catching up with the catalogue, which may take a while');
  const reports = await reconcile(
    { listing, completeness, products, log: store, nowUs, ownNowUs, pause },
    {
      ...{ tasks, mode: 'write', settlingUs, resumeSinceUs: null, coverage, signal },
      onProgress: ({ upToUs }) => onReached(upToUs),
    },
  );
  const unreadable = sumOf(reports, 'unreadable');
  const fields = {
    ...{ subscription, event },
    expected: sumOf(reports, 'expected'),
    pushed: sumOf(reports, 'pushed'),
    late: sumOf(reports, 'late'),
    recovered: sumOf(reports, 'recovered'),
  };
  if (fields.recovered > 0) log.warn(fields, 'events that no push told of were fetched');
  else log.debug(fields, 'compared with the catalogue: nothing is missing');
  if (isLong) log.info({ ...walk, ...fields }, 'caught up with the catalogue');
  if (unreadable > 0) {
    const what = 'records of the catalogue could not be read and are not counted';
    log.warn({ subscription, event, unreadable }, what);
  }
  const undecided = sumOf(reports, 'undecided');
  if (undecided > 0) {
    const what = 'records of the catalogue lack what the filter asks for, and are not counted';
    log.warn({ subscription, event, undecided }, what);
  }
}

/** Walks over more hours may take minutes, and are told of. */
const longHours = 24;

/** How many hours of events tasks have, and from when to when. */
function extentOf(tasks: readonly ReconcileTask[]): { hours: number; from: string; to: string } {
  const us = tasks.reduce((sum, { fromUs, toUs }) => sum + toUs - fromUs, 0);
  return {
    hours: Math.ceil(us / hourUs),
    from: formatDateUs(Math.min(...tasks.map(({ fromUs }) => fromUs))),
    to: formatDateUs(Math.max(...tasks.map(({ toUs }) => toUs))),
  };
}

type Count = Exclude<keyof TaskReport, 'task'>;

function sumOf(reports: readonly TaskReport[], key: Count): number {
  return reports.reduce((sum, report) => sum + report[key], 0);
}
