/** The doctor's check of the shared log: the database, its standby, its connections, and the receivers. */
import type { ServeConfig } from '../../config/config.ts';
import { evaluation, ok } from '../../domain/evaluation.ts';
import { type Check, failedFinding } from '../../domain/finding.ts';
import { type DatabaseState, type KnownNode, nodeSilentMs } from '../../domain/shared-log.ts';
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

async function checkSharedLog(serve: ServeConfig, io: Io): ReturnType<Check> {
  try {
    const log = await openConfiguredLog(serve, io, io.newId());
    try {
      await log.check();
      const [database, nodes] = await Promise.all([log.database(), log.nodes()]);
      const warnings = log.warnings().map(({ code, text }) => `"${text}" (${code})`);
      const found = [
        ok(`PostgreSQL ${database.version} accepts entries.`),
        standbyEvaluation(database, serve.sharedLog?.needsStandby === true),
        ...(database.freeConnections < connectionsMin ? [fewConnections] : []),
        ...warnings.map((warning) =>
          evaluation(
            'warning',
            `The database warns: ${warning}.`,
            'Fix the cause in the database.',
          ),
        ),
        ...receiverEvaluations(nodes),
      ];
      return found.map((one) => ({ check, ...one }));
    } finally {
      await log.close();
    }
  } catch (error) {
    return [failedFinding(check, error, 'Check EARSHOT_LOG_URL.')];
  }
}

const fewConnections = evaluation(
  'warning',
  'The database has too few free connections.',
  'Raise max_connections, or use a pooler: each receiver needs five connections.',
);

function standbyEvaluation({ waitsForStandby, standbys }: DatabaseState, needsStandby: boolean) {
  if (standbys?.length === 0 && waitsForStandby) {
    const text = 'No synchronous standby is connected: the database answers no append.';
    return evaluation('critical', text, 'Start the standby, or change synchronous_standby_names.');
  }
  if (waitsForStandby && needsStandby) return ok('The database has a synchronous standby.');
  const text =
    'Notifications can be lost with the database: without a synchronous standby, or with another EARSHOT_LOG_SYNC than standby.';
  const nextStep =
    'Set synchronous_standby_names on the database, and EARSHOT_LOG_SYNC to standby. See docs/several-receivers.md.';
  return evaluation('warning', text, nextStep);
}

function receiverEvaluations(nodes: readonly KnownNode[]) {
  const silent = nodes.filter(({ ageMs }) => ageMs > nodeSilentMs).map(({ name }) => name);
  const names = nodes.map(({ name }) => name);
  const repeated = new Set(names.filter((name, i) => names.indexOf(name) !== i));
  return [
    ok(`Receivers that report: ${nodes.length - silent.length} of ${nodes.length}.`),
    ...[...repeated].map((name) =>
      evaluation(
        'warning',
        `Several receivers have the name ${name}.`,
        'Set EARSHOT_NODE of each receiver to another name.',
      ),
    ),
    ...silent.map((name) =>
      evaluation(
        'warning',
        `The receiver ${name} does not report.`,
        `Start the receiver, or remove it with \`earshot log remove ${name}\`.`,
      ),
    ),
  ];
}
