/** The doctor's check of the shared log: the database, its standby, and the receivers. */

import type { Io } from '../../core/cli/io.ts';
import type { StartConfig } from '../../core/config/config.ts';
import { type DoctorSlot, needsOf } from '../../core/doctor/steps.ts';
import {
  evaluate,
  type Finding,
  failedFinding,
  finding,
  isProblem,
  ok,
  situationAt,
} from '../../core/terms/evaluation.ts';
import { withLog } from './open.ts';
import type { DatabaseState } from './postgres-log.ts';
import { receiverCheck } from './status.ts';

const check = 'shared log';

/** Returns no step without a shared log. */
export const stepsOf: DoctorSlot['stepsOf'] = async ({ serve }, io) => {
  if (serve?.sharedLog == null) return [];
  return [{ name: check, needs: needsOf(serve), run: () => checkSharedLog(serve, io) }];
};

const checkSharedLog = (serve: StartConfig, io: Io): Promise<Finding[]> =>
  withLog(serve, io, async (log) => {
    await log.check();
    const [database, nodes] = await Promise.all([log.database(), log.nodes()]);
    const situation = situationAt(io.nowUs());
    const names = nodes.map(({ name }) => name);
    const evaluated = nodes
      .map((node) => evaluate([receiverCheck], node, { situation, fine: ok(node.name) }))
      .filter(isProblem);
    return [
      finding(check, 'ok', `PostgreSQL ${database.version} accepts entries.`),
      standbyFinding(database, serve.sharedLog?.needsStandby === true),
      finding(check, 'ok', `Receivers: ${names.join(', ') || 'none'}.`),
      ...evaluated.map((one) => ({ check, ...one })),
    ];
  }).catch((error: unknown) => [failedFinding(check, error, 'Check EARSHOT_LOG_URL.')]);

function standbyFinding(
  { waitsForStandby, standbys }: DatabaseState,
  needsStandby: boolean,
): Finding {
  if (standbys?.length === 0 && waitsForStandby) {
    const text = 'No synchronous standby is connected: the database answers no append.';
    return finding(check, 'critical', text, 'Start it, or change synchronous_standby_names.');
  }
  if (waitsForStandby && needsStandby)
    return finding(check, 'ok', 'The database has a synchronous standby.');
  return finding(
    check,
    'warning',
    'Notifications can be lost with the database: without a synchronous standby, or with another EARSHOT_LOG_SYNC than standby.',
    'Set synchronous_standby_names on the database, and EARSHOT_LOG_SYNC to standby. See docs/several-receivers.md.',
  );
}
