/** Says on stderr that the catalogue makes trouble, once for each cause: what is tried again may take minutes. */
import type { ListingTrouble } from '../../admin/reconcile/page-requests.ts';
import type { Io } from '../io.ts';
import { duration } from './reconcile-progress.ts';

/** Waits that are longer are told. */
const patienceMs = 60_000;

/** `clear` is called before a line is written, to take away what stands there. */
export function createTellTrouble({
  stderr,
}: Pick<Io, 'stderr'>): (trouble: ListingTrouble, clear: () => void) => void {
  const told = new Set<string>();
  return ({ cause, waitMs, triesForMs }, clear) => {
    if (told.has(cause)) return;
    told.add(cause);
    clear();
    const next = waitMs > patienceMs ? ` in ${duration(waitMs)}` : '';
    // Said at once, as nothing else is until it goes on, or is given up.
    const inAll = triesForMs === null ? '' : ` for ${duration(triesForMs)}`;
    stderr.write(`${cause}; trying again${next}${inAll} …\n`);
  };
}
