/** Positions of the log that sinks still need, so that pruning keeps them. */
import { type Database, prepared } from '../../store/engine/database.ts';
import type { DescribeReader, PruneBlocker } from '../../store/pruning/terms.ts';
import { type SinkItem, sinkReader } from './terms.ts';

export const describeReader: DescribeReader = (key) => {
  if (!key.startsWith(sinkReader(''))) return null;
  const sink = key.slice(sinkReader('').length);
  return { name: `sink ${sink}`, advance: '`earshot start`, if earshot.config.ts has the sink' };
};

/** Returns the first notification that waiting items, dead letters and replays of each sink need. */
export function blockers(database: Database): PruneBlocker[] {
  return [
    ...replayBlockers(database),
    ...itemBlockers(database, 'waiting', (sink) => ({
      name: `queue of sink ${sink}`,
      advice: `For the reason: \`earshot sinks list\`. To drop the queue: \`earshot sinks drop ${sink} --waiting\`.`,
    })),
    ...itemBlockers(database, 'dead', (sink) => ({
      name: `dead letters of sink ${sink}`,
      advice: `To list the dead letters: \`earshot sinks dead ${sink}\`. To drop them: \`earshot sinks drop ${sink} --all\`.`,
    })),
  ];
}

interface BlockerRow extends Pick<PruneBlocker, 'position' | 'sinceUs'> {
  sink: string;
}

function replayBlockers(database: Database): PruneBlocker[] {
  return prepared<[], BlockerRow & { id: number }>(
    database,
    `SELECT id, sink, position, requested_at_us AS sinceUs
     FROM sink_replay WHERE ended_at_us IS NULL`,
  )
    .all()
    .map(({ id, sink, ...row }) => ({
      ...row,
      ...{ kind: 'pending' as const, of: 'sinks' },
      key: sinkReader(sink),
      name: `replay ${id} of sink ${sink}`,
      advice: `The receiver continues the replay. To drop it: \`earshot sinks drop ${sink} --waiting\`.`,
    }));
}

/** Finds the first item of each sink. The recursive query reads the sink names from the same index. */
function itemBlockers(
  database: Database,
  state: SinkItem['state'],
  describe: (sink: string) => Pick<PruneBlocker, 'name' | 'advice'>,
): PruneBlocker[] {
  const items = `sink_item INDEXED BY sink_item_${state}_position WHERE state = '${state}'`;
  const sql = `WITH RECURSIVE name (sink) AS (
      SELECT min(sink) FROM ${items}
      UNION ALL SELECT (SELECT min(sink) FROM ${items} AND sink > name.sink)
        FROM name WHERE sink IS NOT NULL)
    SELECT sink, position - 1 AS position, queued_at_us AS sinceUs
    FROM sink_item WHERE id IN (
      SELECT (SELECT id FROM ${items} AND sink = name.sink ORDER BY position LIMIT 1)
      FROM name WHERE sink IS NOT NULL)`;
  return prepared<[], BlockerRow>(database, sql)
    .all()
    .map(({ sink, ...row }) => ({
      ...row,
      ...{ kind: 'pending' as const, of: 'sinks' },
      key: sinkReader(sink),
      ...describe(sink),
    }));
}
