/** The doctor's check of the shared log: the database, its standby, its connections, and the receivers. */

import type { ServeConfig } from '../../config/config.ts';
import { type Finding, failedFinding } from '../../domain/finding.ts';
import { counted } from '../../domain/formats.ts';
import {
  type DatabaseState,
  type DatabaseWarning,
  type KnownNode,
  nodeSilentMs,
} from '../../domain/shared-log.ts';
import type { Io } from '../io.ts';
import { openConfiguredLog } from '../open-store.ts';
import { type DoctorSettings, needsOf, type Step } from './steps.ts';

const check = 'shared log';

/** Connections of one receiver and a command. */
const connectionsMin = 10;

/** Returns no step without a shared log. */
export function sharedLogSteps({ serve }: DoctorSettings, io: Io): Step[] {
  if (serve?.sharedLog == null) return [];
  return [{ name: check, needs: needsOf(serve), run: () => checkSharedLog(serve, io) }];
}

async function checkSharedLog(serve: ServeConfig, io: Io): Promise<Finding[]> {
  try {
    const log = await openConfiguredLog(serve, io, io.newId());
    try {
      await log.check();
      const [database, nodes] = await Promise.all([log.database(), log.nodes()]);
      const needsStandby = serve.sharedLog?.needsStandby === true;
      return [
        { check, state: 'pass', message: `PostgreSQL ${database.version} accepts entries.` },
        standbyFinding(database, needsStandby),
        ...connectionFindings(database),
        ...log.warnings().map(warningFinding),
        ...receiverFindings(nodes),
      ];
    } finally {
      await log.close();
    }
  } catch (error) {
    return [failedFinding(check, error, 'Check EARSHOT_LOG_URL.')];
  }
}

function standbyFinding(
  { waitsForStandby, standbys }: DatabaseState,
  needsStandby: boolean,
): Finding {
  if (!waitsForStandby) {
    return {
      ...{ check, state: 'warn' },
      message:
        'The database has no synchronous standby: its failure can lose notifications that were answered with 200.',
      advice:
        'Set synchronous_standby_names on the database, and EARSHOT_LOG_SYNC to standby. See docs/several-receivers.md.',
    };
  }
  if (standbys?.length === 0) {
    return {
      ...{ check, state: 'fail' },
      message: 'No synchronous standby is connected: the database answers no append.',
      advice: 'Start the standby, or change synchronous_standby_names.',
    };
  }
  const names = standbys === null ? '' : ` (${standbys.join(', ')})`;
  if (needsStandby) {
    return { check, state: 'pass', message: `The database has a synchronous standby${names}.` };
  }
  return {
    ...{ check, state: 'warn' },
    message: `The database has a synchronous standby${names}, but EARSHOT_LOG_SYNC is any.`,
    advice: 'Set EARSHOT_LOG_SYNC to standby, so that nothing is accepted without the standby.',
  };
}

function warningFinding({ code, text }: DatabaseWarning): Finding {
  return {
    ...{ check, state: 'warn' },
    message: `The database warns: "${text}" (${code}).`,
    advice: 'Fix the cause in the database: PostgreSQL may later refuse notifications.',
  };
}

function connectionFindings({ freeConnections }: DatabaseState): Finding[] {
  if (freeConnections >= connectionsMin) return [];
  return [
    {
      ...{ check, state: 'warn' },
      message: `The database has only ${counted(freeConnections, 'free connection')}.`,
      advice: 'Raise max_connections, or use a pooler: each receiver needs five connections.',
    },
  ];
}

function receiverFindings(nodes: readonly KnownNode[]): Finding[] {
  const silent = nodes.filter(({ ageMs }) => ageMs > nodeSilentMs);
  const running = nodes.length - silent.length;
  const names = nodes.map(({ name }) => name);
  const repeated = names.filter((name, i) => names.indexOf(name) !== i);
  return [
    { check, state: 'pass', message: `Receivers that report: ${running} of ${nodes.length}.` },
    ...[...new Set(repeated)].map(
      (name): Finding => ({
        ...{ check, state: 'warn' },
        message: `Several receivers have the name ${name}.`,
        advice: 'Set EARSHOT_NODE of each receiver to another name.',
      }),
    ),
    ...silent.map(
      ({ name }): Finding => ({
        ...{ check, state: 'warn' },
        message: `The receiver ${name} does not report.`,
        advice: `Start the receiver. If you have removed it, run \`earshot log remove ${name}\`.`,
      }),
    ),
  ];
}
