/** Comparing by itself, inside a receiver that serves: what is due, every few minutes, and never in its way. */
import type { ReconcileConfig } from '../../config/config.ts';
import { isAppError } from '../../domain/app-error.ts';
import {
  comparisonHorizonUs,
  hourUs,
  recheckAfterUs,
  settlingUs,
} from '../../domain/completeness.ts';
import { hourOf } from '../../domain/coverage.ts';
import { formatDateUs } from '../../domain/dates.ts';
import { errorFields, type Job, type RoundTimes, startJob } from '../../domain/job.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';
import { type DueTasks, dueTasks } from '../../reconcile/due-windows.ts';
import { reconcile } from '../../reconcile/reconcile.ts';
import {
  mergeWindows,
  type ReconcileTask,
  type TaskReport,
  type TimeWindow,
} from '../../reconcile/tasks.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import type { Store } from '../../store/store.ts';
import { type Io, pause } from '../io.ts';
import { type OpenedListing, openListing } from '../reconcile-listing.ts';

/** The first round waits until pushes arrive again. */
const usual: RoundTimes = {
  firstMs: 30_000,
  intervalMs: 300_000,
  retryMs: 60_000,
  retryMsMax: 3_600_000,
};

type ReconcileIo = Pick<Io, 'nowUs' | 'random' | 'fetch' | 'signal'>;

const failedText = 'the log could not be compared with the catalogue; tried again later';

/** Starts the rounds. A command that compares at the moment does the work of a round. */
export function startReconcile(
  parts: ReconcileParts,
  config: ReconcileConfig,
  io: ReconcileIo,
  timing: Partial<RoundTimes> = {},
): Job {
  let round: (() => Promise<RoundOutcome>) | undefined;
  return startJob(
    {
      every: { ...usual, ...timing },
      failed: failedText,
      acquireLock: () => createAcquireLock(config.dataDir)('reconcile', { waitMs: 0 }),
      // When something could be compared, the rest is no more urgent than usual.
      run: async (signal) => {
        round ??= createReconcileRounds(parts, config, io, signal);
        return (await round()) !== 'none';
      },
    },
    { pause, random: io.random, log: parts.log },
  );
}

/** Returns the function that does one round: it resolves with how much of the due work was compared. */
export function createReconcileRounds(
  parts: ReconcileParts,
  config: ReconcileConfig,
  io: ReconcileIo,
  signal: AbortSignal,
): () => Promise<RoundOutcome> {
  const opened = openListing(
    config,
    { ...io, signal: AbortSignal.any([io.signal, signal]) },
    ({ cause, waitMs }) =>
      parts.log.debug({ reason: cause, waitMs }, 'the catalogue is asked again'),
  );
  const how: DueComparison = { ...opened, ownNowUs: io.nowUs, looked: { atUs: null }, signal };
  return () => compareDue(parts, how);
}

interface ReconcileParts {
  store: Pick<Store, 'administration' | 'completeness' | 'lastPosition'>;
  products: Products;
  log: Logger;
}

interface DueComparison extends OpenedListing {
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
async function compareDue(parts: ReconcileParts, how: DueComparison): Promise<RoundOutcome> {
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
  for (const [kind, error] of failed) {
    const level = isAppError(error, 'internal') ? 'error' : 'warn';
    parts.log[level]({ ...fieldsOf(kind), ...errorFields(error) }, failedText);
  }
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

function byKind(due: DueTasks): KindRound[] {
  const key = ({ subscription, event }: Kind) => `${subscription} ${event}`;
  const all = [...due.earlyChecks, ...due.tasks, ...due.rechecks];
  return [...Map.groupBy(all, key)].flatMap(([name, [first]]) => {
    if (first === undefined) return [];
    const own = (some: readonly ReconcileTask[]) => some.filter((task) => key(task) === name);
    const { subscription, event } = first;
    const { earlyChecks, tasks, rechecks } = due;
    return createKindRound(
      { subscription, event },
      { earlyChecks: own(earlyChecks), tasks: own(tasks), rechecks: own(rechecks) },
    );
  });
}

function isOfThisKind(error: unknown): boolean {
  return isAppError(error) && error.code !== 'cancelled' && error.code !== 'conflict';
}

async function whatIsDue(
  { store }: ReconcileParts,
  { looked, ownNowUs }: DueComparison,
  nowUs: number,
): Promise<DueTasks> {
  const { administration, completeness } = store;
  const sinceUs = nowUs - comparisonHorizonUs;
  const aheadUs = nowUs - ownNowUs();
  const [definitions, registrations, coverage, uptimes, gaps, wholeUs] = await Promise.all([
    completeness.definitions(),
    administration.registrations(),
    completeness.coverage({ sinceUs, untilUs: nowUs }),
    completeness.uptimes(sinceUs - aheadUs),
    administration.gaps(),
    completeness.unprunedSinceUs(),
  ]);
  // A look that lies ahead was dated by a clock that was: before the first answer it is our own.
  const earlyCheckedAtUs = looked.atUs !== null && looked.atUs <= nowUs ? looked.atUs : null;
  // A push of the last hour is dated by our own clock, which may be behind.
  const unprunedSinceUs = wholeUs + Math.max(0, aheadUs);
  const times = {
    nowUs,
    settlingUs,
    recheckAfterUs,
    comparisonHorizonUs,
    earlyCheckedAtUs,
    unprunedSinceUs,
  };
  const shifted = uptimes.map(({ fromUs, toUs }) => ({
    fromUs: fromUs + aheadUs,
    toUs: toUs + aheadUs,
  }));
  return dueTasks({ definitions, registrations, coverage, uptimes: shifted, gaps, ...times });
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
  const sum = (key: Count) => reports.reduce((total, report) => total + report[key], 0);
  const fields = {
    ...{ subscription, event },
    expected: sum('expected'),
    pushed: sum('pushed'),
    late: sum('late'),
    recovered: sum('recovered'),
  };
  if (fields.recovered > 0) log.warn(fields, 'events that no push told of were fetched');
  else log.debug(fields, 'compared with the catalogue: nothing is missing');
  if (isLong) log.info({ ...walk, ...fields }, 'caught up with the catalogue');
  for (const [key, message] of Object.entries(uncounted) as [Count, string][]) {
    const count = sum(key);
    if (count > 0) log.warn({ subscription, event, [key]: count }, message);
  }
}

type Count = Exclude<keyof TaskReport, 'task'>;

const uncounted: Partial<Record<Count, string>> = {
  unreadable: 'records of the catalogue could not be read and are not counted',
  undecided: 'records of the catalogue lack what the filter asks for, and are not counted',
};

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

/** The most that is passed over at once. */
const skippedHoursMax = 8;

/** Tasks that are compared in one go. */
interface RoundPart {
  /** Oldest first. What is longer than an hour has its first hour as a task of its own. */
  tasks: readonly ReconcileTask[];
  /** False for early looks. */
  coverage: boolean;
}

type Kind = Pick<ReconcileTask, 'subscription' | 'event'>;

type KindRound = ReturnType<typeof createKindRound>;

/**
 * The hour that fails is left to the next round. Where even the first hour of a part fails, more hours are
 * passed over, twice as many each time. Its being asked for alone keeps one hour from spoiling those before it.
 */
function createKindRound(kind: Kind, due: DueTasks) {
  const { earlyChecks, tasks, rechecks } = due;
  const parts = [partOf(earlyChecks, false), partOf(tasks, true), partOf(rechecks, true)].filter(
    (part) => part.tasks.length > 0,
  );
  const skipped: TimeWindow[] = [];
  let failures = 0;
  let skippedHours = 1;
  let hasProgress = false;
  let missesLook = false;

  /** Passes over the hour that the next part was stuck in: all before `reachedUs` had been compared. */
  function failed(reachedUs: number) {
    const [part] = parts;
    const [first] = part?.tasks ?? [];
    if (part === undefined || first === undefined) return;
    failures += 1;
    if (!part.coverage) missesLook = true;
    const stuck = part.tasks.find(({ toUs }) => toUs > reachedUs) ?? first;
    const stuckUs = hourOf(Math.max(stuck.fromUs, reachedUs));
    const isFirstHour = stuckUs === hourOf(first.fromUs);
    if (!isFirstHour) hasProgress = true;
    const goOnUs = stuckUs + (isFirstHour ? skippedHours : 1) * hourUs;
    skippedHours = isFirstHour ? Math.min(skippedHours * 2, skippedHoursMax) : 1;
    for (const { fromUs, toUs } of part.tasks) {
      const window = { fromUs: Math.max(fromUs, stuckUs), toUs: Math.min(toUs, goOnUs) };
      if (window.fromUs < window.toUs) skipped.push(window);
    }
    const rest = part.tasks.flatMap((task) =>
      task.toUs > goOnUs ? [{ ...task, fromUs: Math.max(task.fromUs, goOnUs) }] : [],
    );
    parts.splice(0, 1, ...(rest.length === 0 ? [] : [partOf(rest, part.coverage)]));
  }

  return {
    kind,
    /** What comes next; null when nothing is left. */
    next: () => parts[0] ?? null,
    done: () => {
      parts.shift();
      skippedHours = 1;
      hasProgress = true;
    },
    failed,
    failures: () => failures,
    /** Whether anything was compared. */
    hasProgress: () => hasProgress,
    /** Whether all early looks were taken. */
    hasLooked: () => !missesLook && parts.every(({ coverage }) => coverage),
    /** What was passed over or never tried, oldest first. */
    left: (): TimeWindow[] => mergeWindows([...skipped, ...parts.flatMap((part) => part.tasks)]),
  };
}

function partOf(tasks: readonly ReconcileTask[], coverage: boolean): RoundPart {
  return { coverage, tasks: tasks.flatMap(firstHourApart) };
}

function firstHourApart(task: ReconcileTask): ReconcileTask[] {
  const endUs = hourOf(task.fromUs) + hourUs;
  if (endUs >= task.toUs) return [task];
  return [
    { ...task, toUs: endUs },
    { ...task, fromUs: endUs },
  ];
}
