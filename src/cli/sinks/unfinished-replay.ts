/** Finds a replay that is still going on, and hands over what another one would. */
import { AppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/notification-date.ts';
import type { Replay, SinkReader } from '../../domain/sinks.ts';

/** `lastPosition`: of the last notification that was found. */
type Wish = Pick<Replay, 'sink' | 'filter' | 'sinceUs' | 'untilUs' | 'lastPosition'>;

/**
 * Rejects with `conflict` where one with the same filter covers the window, reaches the last notification that was
 * found, and is not all handed over: `7d` asked for twice is the same, though its window begins a little later,
 * unless something has come since that the sink wants.
 */
export async function refuseSameReplay(
  { replays, items }: Pick<SinkReader, 'replays' | 'items'>,
  wish: Wish,
): Promise<void> {
  const { sink } = wish;
  const waiting = new Set<number | null>();
  for await (const { replayId } of items({ sink, state: 'waiting' })) waiting.add(replayId);
  const same = (await replays({ sink, all: true })).find(
    (one) => (one.endedAtUs === null || waiting.has(one.id)) && covers(one, wish),
  );
  if (same === undefined) return;
  throw new AppError(
    'conflict',
    `Replay ${same.id}, asked for at ${shortDateUs(same.requestedAtUs)} (UTC), hands the same over to ${sink}, and has not finished. It goes on by itself while the receiver runs: \`earshot sinks list\`.`,
  );
}

function covers(one: Wish, wish: Wish): boolean {
  const begins = one.sinceUs === null || (wish.sinceUs !== null && one.sinceUs <= wish.sinceUs);
  const ends = one.untilUs === null || (wish.untilUs !== null && wish.untilUs <= one.untilUs);
  // One without an end hands over what there was when it was asked for.
  const reaches = one.lastPosition >= wish.lastPosition;
  return one.filter === wish.filter && begins && ends && reaches;
}
