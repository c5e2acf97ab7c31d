/** Which of a product's notifications counts: the newest state of the catalogue, however they arrive. */

/** What one notification says of a product's state. */
export interface StateNews {
  position: number;
  deleted: boolean;
  /**
   * When the catalogue was in this state, in microseconds: ModificationDate, or DeletionDate. Null where
   * the notification came without a record: then it tells of no state, but that of a deletion.
   */
  recordUs: number | null;
  /** For a deletion, when it is known to have happened at the latest. */
  notifiedUs: number;
}

/** What is kept of a product's state: the newest record alive, and the newest deletion. */
export interface ProductState {
  lifeUs: number | null;
  lifePosition: number | null;
  /** The time of the newest deletion, with or without a record. */
  goneUs: number | null;
  goneRecordUs: number | null;
  gonePosition: number | null;
}

export const unknownState: ProductState = {
  lifeUs: null,
  lifePosition: null,
  goneUs: null,
  goneRecordUs: null,
  gonePosition: null,
};

/**
 * Takes news into account. Each of the values only grows, so that the order of arrival does not matter,
 * nor does hearing a thing twice. Of two records of the same moment `isLarger` chooses; it is asked
 * whether the record of the news is larger than the one at a position.
 */
export function withNews(
  state: ProductState,
  news: StateNews,
  isLarger: (position: number) => boolean,
): ProductState {
  const { recordUs, position } = news;
  const wins = (us: number | null, held: number | null) =>
    recordUs !== null &&
    (us === null || held === null || recordUs > us || (recordUs === us && isLarger(held)));
  if (!news.deleted) {
    if (!wins(state.lifeUs, state.lifePosition)) return state;
    return { ...state, lifeUs: recordUs, lifePosition: position };
  }
  const goneUs = Math.max(state.goneUs ?? recordUs ?? news.notifiedUs, recordUs ?? news.notifiedUs);
  const known = { ...state, goneUs };
  if (!wins(state.goneRecordUs, state.gonePosition)) return known;
  return { ...known, goneRecordUs: recordUs, gonePosition: position };
}

/** What the state comes to. Deleted wins a tie: nothing is modified after it is gone. */
export function currentOf(state: ProductState): {
  deleted: boolean;
  /** The notification whose record is the product's; null while none has come. */
  recordPosition: number | null;
} {
  const { lifeUs, lifePosition, goneUs, goneRecordUs, gonePosition } = state;
  const deleted = goneUs !== null && goneUs >= (lifeUs ?? goneUs);
  // A deletion that came without its record leaves the last one known.
  const goneIsNewest = goneRecordUs !== null && goneRecordUs >= (lifeUs ?? goneRecordUs);
  return { deleted, recordPosition: deleted && goneIsNewest ? gonePosition : lifePosition };
}

/** The time of deletion that a tombstone shows: its record's own, else that of the newest news. */
export function deletionUsOf(state: ProductState): number | null {
  const { deleted, recordPosition } = currentOf(state);
  if (!deleted) return null;
  return recordPosition === state.gonePosition && state.gonePosition !== null
    ? state.goneRecordUs
    : state.goneUs;
}
