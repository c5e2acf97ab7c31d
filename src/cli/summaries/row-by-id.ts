/** Looks up one summary by the id that people are shown. */
import type { SummaryReader, SummaryRow } from '../../domain/summaries.ts';

/** Null where there is none. */
export async function rowById(
  id: number,
  summaries: Pick<SummaryReader, 'find'>,
): Promise<SummaryRow | null> {
  for await (const row of summaries.find({ beforeId: id + 1, limit: 1 })) {
    return row.id === id ? row : null;
  }
  return null;
}
