/** `earshot admin log`: shows the shared log of several receivers, and moves a log into it or back. */
import { Argument } from 'commander';
import { defineCommand, defineGroup } from '../../core/cli/command.ts';
import { confirm, jsonOption, yesOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { createProgressLine, printJson } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import { type DataConfig, loadConfig } from '../../core/config/config.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { evaluate, ok, situationAt } from '../../core/terms/evaluation.ts';
import * as report from '../../core/terms/report.ts';
import { counted, countText } from '../../core/terms/text.ts';
import { requireDatabase } from '../../store/engine/database.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { openConfiguredStore } from '../../store/store.ts';
import {
  type CopiedLog,
  type CopyOptions,
  copyToSharedLog,
  leaveSharedLog,
  leaveWithoutDatabase,
} from './copy-log.ts';
import { noSharedLog, withLog } from './open.ts';
import type { DatabaseState, KnownNode } from './postgres-log.ts';
import type { LogHead } from './schema.ts';
import { receiverCheck } from './status.ts';

const statusCommand = defineCommand('status', {
  description: 'Show the shared log: the database, the receivers and their lag.',
  flags: (command) => command.addOption(jsonOption()),
  help: `The command reads the database of EARSHOT_LOG_URL.

Fields of --json: logId, state, first, number, position, database, receivers.
  state       open: in use. copying: not complete yet. moved: another log continues this log
  number      number of the last entry; first is the first one that was not removed
  position    position of the last notification
  database    version, waitsForStandby, standbys (null: the user may not see them), leases
  receivers   name, id, and its last report: applied, lag (entries), ageMs, version, refusing and
              fault (reasons for refusing notifications and for not applying entries, or null),
              freeBytes

Examples:
  $ earshot admin log status    print the state
  $ earshot admin log status --json | jq '.receivers[].lag'    print the lag of each receiver
  $ earshot admin log    same as earshot admin log status`,
  run: (io, { json }: { json?: true }) =>
    withLog(loadConfig(io, ['data']), io, async (log) => {
      const [head, database, nodes] = await Promise.all([log.head(), log.database(), log.nodes()]);
      if (!json) return printReport(io, statusReport(head, database, nodes, io.nowUs()));
      const receivers = nodes.map(({ facts, ...node }) => {
        const { credentials: _, startedAtUs: __, ...shown } = facts;
        return { ...node, ...shown };
      });
      await printJson(io.stdout, { ...head, database, receivers }, 'line');
    }),
});

const stateTexts: Record<LogHead['state'], string> = {
  open: 'open',
  copying: 'not complete: `earshot admin log copy` has not finished',
  moved: 'closed: another log continues it. Stop the receivers that use this one',
};

function statusReport(
  head: LogHead,
  database: DatabaseState,
  nodes: readonly KnownNode[],
  nowUs: number,
) {
  const { version } = database;
  const blocks = [
    report.facts(
      ['shared log', stateTexts[head.state]],
      ['entries', `${countText(head.number)} (from ${countText(head.first)})`],
      ['last', `position ${countText(head.position)}`],
      ['database', `PostgreSQL ${version}, ${standbyText(database)}`],
    ),
    report.table('Receivers', nodeColumns(database, nowUs), nodes),
  ];
  return { title: 'Shared log', blocks };
}

function standbyText({ waitsForStandby, standbys }: DatabaseState): string {
  if (!waitsForStandby) return 'no synchronous standby';
  if (standbys === null) return 'synchronous standby configured';
  return standbys.length === 0
    ? 'synchronous standby not connected: commits wait'
    : `synchronous standby: ${standbys.join(', ')}`;
}

function nodeColumns({ leases }: DatabaseState, nowUs: number): report.Column<KnownNode>[] {
  const [situation, fine] = [situationAt(nowUs), ok('accepts notifications')];
  const jobsOf = ({ id }: KnownNode) =>
    leases
      .filter(({ nodeId }) => nodeId === id)
      .map(({ name }) => name)
      .join(', ');
  return [
    { title: 'receiver', value: ({ name }) => name },
    {
      ...{ title: 'state', grows: true },
      value: (node) => evaluate([receiverCheck], node, { situation, fine }),
    },
    { title: 'lag', isNumber: true, value: ({ lag }) => lag },
    { title: 'report age', isNumber: true, value: ({ ageMs }) => report.span(ageMs * 1_000) },
    { title: 'free', isNumber: true, value: ({ facts }) => report.size(facts.freeBytes) },
    { title: 'jobs', value: (node) => jobsOf(node) || null },
  ];
}

interface CopyFlags {
  force?: true;
  yes?: true;
  json?: true;
}

const copyCommand = defineCommand('copy', {
  description: 'Move the log of a data directory into the shared log, or back.',
  flags: (command) =>
    command
      .addArgument(
        new Argument('[target]', 'target of the copy')
          .choices(['postgres', 'sqlite'])
          .default('postgres'),
      )
      .option('--force', 'force the action (sqlite: also without the database)')
      .addOption(yesOption())
      .addOption(jsonOption()),
  help: `postgres: the command copies the log of the data directory into the empty database of
EARSHOT_LOG_URL, while the receiver runs. All notifications keep their positions, and sinks,
summaries, subscriptions and alerts keep their state. The keys of all notifications are compared.
In the last step, the data directory becomes part of the shared log: from then on, a receiver
without EARSHOT_LOG_URL answers 503. Restart the receiver with EARSHOT_LOG_URL immediately
afterwards.

sqlite: the command closes the shared log, and makes the data directory a log of its own again. All
receivers of the shared log then answer 503. Restart one receiver without EARSHOT_LOG_URL
immediately afterwards. With --force, the command does not use the database: after the loss of the
database, the data directory keeps what its receiver has applied, and can be copied into a new
database.

If the command is interrupted, then run the command again: it starts from the beginning.

Fields of --json: notifications, entries.

Examples:
  $ EARSHOT_LOG_URL=postgres://… earshot admin log copy    move the log to PostgreSQL
  $ EARSHOT_LOG_URL=postgres://… earshot admin log copy sqlite    move it back
  $ earshot admin log copy --yes    do not ask`,
  run: async (io: Io, flags: CopyFlags, target: 'postgres' | 'sqlite') => {
    const config = loadConfig(io, ['data']);
    requireDatabase(config.dataDir);
    const move = target === 'postgres' ? join : leave;
    const { notifications, entries } = await move(io, config, flags);
    if (flags.json) await printJson(io.stdout, { notifications, entries }, 'line');
  },
});

const removeCommand = defineCommand('remove', {
  description: 'Remove a stopped receiver from the list of receivers.',
  flags: (command) => command.argument('<receiver>', 'name of the receiver'),
  help: `A removed receiver raises no alerts. If the receiver starts again, it is listed again.

Examples:
  $ earshot admin log remove receiver-2    remove a receiver
  $ earshot admin log    print the other receivers
  $ earshot admin log status --json    print them as JSON`,
  run: (io: Io, _: object, name: string) =>
    withLog(loadConfig(io, ['data']), io, async (log) => {
      if (await log.removeNode(name)) return void io.stderr.write(`Removed ${name}.\n`);
      throw new AppError('not_found', `There is no stopped receiver with the name ${name}.`, {
        advice:
          'Run `earshot admin log` to list the receivers. Stop the receiver at least 20 seconds before.',
      });
    }),
});

async function join(io: Io, config: DataConfig, flags: CopyFlags): Promise<CopiedLog> {
  return withLog(config, io, async (log, nodeId) => {
    await confirm(
      io,
      `Move the log in ${config.dataDir} into the shared log? At the end, the running receiver refuses notifications until it is restarted with EARSHOT_LOG_URL.`,
      flags,
    );
    const acquireLock = createAcquireLock(config.dataDir);
    const { onProgress, clear } = createCopyProgress(io);
    const options = { ...io, ...config, log, nodeId, acquireLock, onProgress };
    const copied = await copyToSharedLog(options).finally(clear);
    const what = counted(copied.notifications, 'notification');
    io.stderr.write(
      copied.wasMoved === true
        ? `The log is already part of the shared log, which has ${what}.\n`
        : `Moved ${what} into the shared log. Now restart the receiver with EARSHOT_LOG_URL.\n`,
    );
    return copied;
  });
}

/** With --force, leaves the shared log without its database. */
async function leave(io: Io, config: DataConfig, flags: CopyFlags): Promise<CopiedLog> {
  const isForced = flags.force === true;
  if (!isForced && config.sharedLog === null) throw noSharedLog();
  const question = isForced
    ? `Continue with the log in ${config.dataDir} alone, without what this receiver has not applied? Stop the receiver first.`
    : `Close the shared log, and continue with the log in ${config.dataDir} alone? All receivers refuse notifications until one is restarted without EARSHOT_LOG_URL.`;
  await confirm(io, question, flags);
  const left = isForced ? await leaveWithoutDatabase(config) : await closeLog(io, config);
  io.stderr.write(
    `The data directory has ${counted(left.notifications, 'notification')}, up to entry ${left.entries}, and is a log of its own. Now restart the receiver without EARSHOT_LOG_URL.\n`,
  );
  return left;
}

async function closeLog(io: Io, config: DataConfig): Promise<CopiedLog> {
  const store = await openConfiguredStore(config, io, { mustExist: true });
  const { shared, acquireLock } = store;
  let isOpen = true;
  try {
    if (shared === null) throw noSharedLog();
    const { onProgress, clear } = createCopyProgress(io);
    const options = { ...io, ...config, ...shared, nodeId: shared.id, acquireLock, onProgress };
    const left = await leaveSharedLog(options).finally(clear);
    isOpen = false;
    return left;
  } finally {
    await store.close().catch((error: unknown) => {
      if (isOpen) throw error;
    });
  }
}

function createCopyProgress({ stderr }: Io) {
  const { show, clear } = createProgressLine(stderr);
  const verbs = { copying: 'Copying', comparing: 'Comparing' };
  const onProgress: CopyOptions['onProgress'] = ({ step, done, of }) =>
    show(`${verbs[step]}: ${Math.floor((done / Math.max(1, of)) * 100)} %`);
  return { onProgress, clear };
}

export const logCommand = defineGroup('log', {
  description: 'Show the shared log of several receivers, or move a log into it.',
  help: `See docs/several-receivers.md.

Examples:
  $ earshot admin log    print the database, the receivers and their lag
  $ earshot admin log copy    move the log of this receiver into the shared log
  $ earshot admin log copy sqlite    move it back`,
  usual: statusCommand,
  commands: [copyCommand, removeCommand],
});
