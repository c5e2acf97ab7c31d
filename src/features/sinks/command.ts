/** `earshot sinks`: lists the sinks with their evaluation. */

import { defineCommand, defineGroup, withParts } from '../../core/cli/command.ts';
import { jsonOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { writeJson } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import { loadConfig } from '../../core/config/config.ts';
import { activeAlertsOf } from '../../core/status/status.ts';
import { situationAt } from '../../core/terms/evaluation.ts';
import { toJson } from '../../core/terms/json-rows.ts';
import { deadCommand, dropCommand, retryCommand } from './dead-letters.ts';
import { noFileNote, readDeliveryState, receiverNote, unknownDelivery } from './definitions.ts';
import { replayCommand } from './replay.ts';
import { evaluateConfig, evaluateSink, readSinks, sinkSchema, sinksReport } from './report.ts';
import { testCommand } from './test-sink.ts';

const listCommand = defineCommand('list', {
  description: 'Show state, queue, dead letters and errors of every sink.',
  flags: (command) => command.addOption(jsonOption()),
  help: `Columns, fewer on a narrow terminal:
  state      ok, warning or critical, explained below the table
  target     kind of the sink; "gone" if the sink is not in earshot.config.ts
  behind     number of log positions that the sink has not read; "-" if never started
  waiting    number of queued notifications
  replays    number of replays with notifications that are not queued yet
  lag        age of the oldest undelivered notification
  delivered  number of acknowledged deliveries
  last       time of the last acknowledged delivery

Fields of --json: those of a sink in /api/status (docs/reference/http.md).

Examples:
  $ earshot sinks list                                           print a table
  $ earshot sinks list --json | jq '.[] | select(.dead > 0)'     list sinks with dead letters
  $ watch -n 10 earshot sinks list                               repeat every 10 seconds`,
  run: listSinks,
});

export const sinksCommand = defineGroup('sinks', {
  description: 'List and test sinks; retry or drop dead letters.',
  help: `The receiver delivers notifications to the sinks of earshot.config.ts. A dead letter is a
notification that a sink refused permanently. See docs/sinks.md.

Examples:
  $ earshot sinks                     list sinks
  $ earshot sinks test hook           deliver a test notification
  $ earshot sinks dead bus            list dead letters
  $ earshot sinks retry bus --all     retry all dead letters`,
  usual: listCommand,
  commands: [testCommand, deadCommand, retryCommand, dropCommand, replayCommand],
});

async function listSinks(io: Io, { json }: { json?: true }): Promise<void> {
  const noFile = noFileNote(io);
  // In another folder than the receiver's, it is not known which sinks are configured.
  const { delivery, rejected } =
    noFile === null ? await readDeliveryState(io) : { delivery: unknownDelivery, rejected: null };
  await withParts(io, ['reader'], async ({ reader }) => {
    const alerts = await activeAlertsOf(io.features, reader);
    const nowUs = io.nowUs();
    const situation = situationAt(nowUs, alerts);
    const read = await readSinks({ sinks: reader.sinks, notifications: reader }, delivery);
    const sinks = read.map((one) => ({ ...one, evaluation: evaluateSink(one, situation) }));
    const config = evaluateConfig(rejected, situation);
    if (json)
      await writeJson(
        io.stdout,
        sinks.map((one) => toJson(sinkSchema, one)),
      );
    else await printReport(io, sinksReport(sinks, { config, nowUs }));
    const isShared = (await reader.nodeId()) !== null;
    const receiver =
      json || sinks.length === 0
        ? null
        : await receiverNote({ ...loadConfig(io, ['data']), isShared });
    for (const note of [...(json ? config.evidence : []), noFile, receiver])
      if (note !== null) io.stderr.write(`\n${note}\n`);
  });
}
