/** A prune as programs get it. */
import { formatDateUs } from '../../domain/notification-date.ts';
import type { Prunable } from '../../domain/pruning.ts';
import type { Pruned } from '../../store/pruning/prune-log.ts';

export interface Removed {
  pruned: Pruned;
  /** By which the file is smaller. */
  givenBackBytes: number;
}

/** Times ISO 8601 UTC; `removed` is null where nothing was to be removed, as by `--dry-run`. */
export function toPruneJson(found: Prunable, removed: Removed | null) {
  const { notifications, fromUs, untilUs, bytes, quarantined, heldBy } = found;
  return {
    notifications,
    from: fromUs === null ? null : formatDateUs(fromUs),
    until: untilUs === null ? null : formatDateUs(untilUs),
    bytes,
    quarantined,
    heldBy: heldBy.map(({ name, position, sinceUs }) => ({
      name,
      position,
      since: sinceUs === null ? null : formatDateUs(sinceUs),
    })),
    removed: removed === null ? null : removedJson(removed),
  };
}

function removedJson({ pruned, givenBackBytes }: Removed) {
  return {
    notifications: pruned.notifications,
    quarantined: pruned.quarantine,
    summaries: pruned['summary-jobs'] + pruned['summary-texts'],
    givenBackBytes,
  };
}
