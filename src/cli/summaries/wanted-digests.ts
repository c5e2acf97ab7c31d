/** The digests that flags ask for: of whole windows that are over, so that the same ones are asked for again. */
import { AppError } from '../../domain/app-error.ts';
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { DigestWindow, NewSummaryJob } from '../../domain/summaries.ts';
import { type WindowSpan, windowAt, windowsIn } from '../../summary/digest/digest-window.ts';
import { digestJob } from '../../summary/worker/summary-jobs.ts';
import { minuteOf } from './subject-name.ts';
import { productsReceived, type Sources } from './wanted-products.ts';

/** More windows than these are a slip of the hand. */
const windowsMax = 1_000;
const minuteUs = 60_000_000;

/** Which windows a span touches, the earliest first. */
export interface WantedWindows {
  window: DigestWindow;
  /** Those that are over. */
  complete: readonly WindowSpan[];
  /** The one that still lasts; null where the span ends before it. */
  current: WindowSpan | null;
}

/** Without `sinceUs`, the last window that was over before `untilUs`. Throws `usage` for too many. */
export function wantedWindows(
  window: DigestWindow,
  { sinceUs, untilUs }: { sinceUs: number | undefined; untilUs: number },
  nowUs: number,
): WantedWindows {
  const last = windowAt(window, untilUs - 1);
  const firstUs = sinceUs ?? (last.untilUs <= untilUs ? last.fromUs : last.fromUs - 1);
  const all = windowsIn(window, windowAt(window, firstUs).fromUs, last.untilUs);
  if (all.length > windowsMax) {
    throw new AppError('usage', `These are ${all.length} windows, each of which is a request.`, {
      advice: `Ask for ${windowsMax} at most: a later --since, or longer windows.`,
    });
  }
  const current = all.find((one) => one.untilUs > nowUs) ?? null;
  const complete = all.filter((one) => one.untilUs <= nowUs);
  return { window, complete, current };
}

/** The newest first. What still lasts is told of up to now only where nothing came before it. */
export async function digestsOf(
  { window, complete, current }: WantedWindows,
  tree: FilterTree | null,
  flags: { subscription?: string; filter?: string; since?: number; limit?: number },
  sources: Sources,
): Promise<NewSummaryJob[]> {
  const { subscription = null, filter = '', limit = windowsMax, since } = flags;
  const { nowUs, tell } = sources;
  const spans = [...complete];
  if (current !== null) {
    const untilUs = Math.floor(nowUs / minuteUs) * minuteUs;
    const lasts = `The ${window} from ${minuteOf(current.fromUs)} UTC on still lasts`;
    if (await holdsAny(complete, tree, flags, sources)) {
      if (since !== undefined) tell(`${lasts}, and is left out.`);
    } else if (untilUs > current.fromUs) {
      spans.push({ ...current, untilUs });
      tell(`Nothing came in a ${window} that is over. ${lasts}, and is told of up to now.`);
    }
  }
  const scope = { subscription, collection: null, area: null, filter: filter || null };
  return spans
    .toReversed()
    .slice(0, limit)
    .map((span) => ({ ...digestJob({ ...span, ...scope }), dueAtUs: nowUs }));
}

async function holdsAny(
  windows: readonly WindowSpan[],
  tree: FilterTree | null,
  { subscription }: { subscription?: string },
  sources: Sources,
): Promise<boolean> {
  const [first] = windows;
  const last = windows.at(-1);
  if (first === undefined || last === undefined) return false;
  const span = { sinceUs: first.fromUs, untilUs: last.untilUs };
  return (await productsReceived(span, tree, { subscription, limit: 1 }, sources)).length > 0;
}
