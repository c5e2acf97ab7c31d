/** `earshot sinks test`: delivers a test notification to a sink, outside of its queue. */

import { defineCommand, withParts } from '../../core/cli/command.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { captureConsole } from '../../core/cli/logger.ts';
import { loadConfig } from '../../core/config/config.ts';
import { createRunProgram } from '../../core/host/run-program.ts';
import { AppError } from '../../core/terms/app-error.ts';
import type { NotificationRow } from '../../core/terms/ports.ts';
import { printable } from '../../core/terms/text.ts';
import { definedSink } from './definitions.ts';
import { attemptOnce, testDocument } from './delivery.ts';
import { compileMatcher } from './document.ts';
import { openTarget, type SinkDefinition } from './registry.ts';

export const testCommand = defineCommand('test', {
  description: 'Deliver a test notification to a sink and print the response.',
  flags: (command) => command.argument('<sink>', 'name of the sink'),
  help: `The command sends the newest notification that matches the sink. If no notification matches, then
the command sends a built-in sample. The delivered document has \`"test": true\` and an id that
starts with test_. The position of the sink does not change.

Exit codes: 0 acknowledged, 1 not acknowledged, 2 wrong usage or configuration.

Examples:
  $ earshot sinks test hook                   test one sink
  $ earshot sinks test hook && echo works     use the exit code
  $ earshot sinks list                        show the names of the sinks`,
  run: testSink,
});

/** Number of newest notifications that are searched for a matching one. */
const recentMax = 200;

/** Rejects with `unavailable` if the sink does not acknowledge the sample. */
async function testSink(io: Io, _flags: object, name: string): Promise<void> {
  const definition = await definedSink(name, io);
  const sample = (await recentSample(definition, io)) ?? builtInSample(io);
  const document = testDocument(sample.row, sample.body, name, io.newId());
  const { catalogueUrl, publicUrl } = loadConfig(io, ['catalogueUrl', 'publicUrl']);
  const target = openTarget(definition, {
    urls: { catalogue: catalogueUrl, receiver: publicUrl },
    run: createRunProgram(io),
    nowUs: io.nowUs,
    logger: { ...silent, info: (fields) => printOutput(io, fields) },
  });
  io.stderr.write(`Sending ${sample.what} to ${name}: test delivery ${document.id}.\n`);
  const release = captureConsole((text) => printOutput(io, { stderr: text }));
  try {
    const answer = await attemptOnce(document, definition, { target, pause, signal: io.signal });
    if (answer.kind !== 'acknowledged') {
      throw new AppError(
        'unavailable',
        `${name} did not acknowledge the test delivery: ${answer.reason}.`,
        { advice: 'To check the requirements of the sink: `earshot doctor`.' },
      );
    }
    io.stdout.write(`${name} acknowledged the test delivery ${document.id}.\n`);
  } finally {
    await target.close();
    release();
  }
}

const nothing = () => undefined;

const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Prints the output of a command sink. */
function printOutput({ stderr }: Pick<Io, 'stderr'>, fields: object): void {
  for (const [stream, text] of Object.entries(fields)) {
    if (!['stdout', 'stderr'].includes(stream) || typeof text !== 'string' || text === '') continue;
    for (const line of text.split('\n')) stderr.write(`  ${stream}: ${printable(line)}\n`);
  }
}

interface Sample {
  what: string;
  row: NotificationRow;
  body: Uint8Array;
}

/** Newest notification that matches the sink; null without one, or without a data directory. */
async function recentSample(definition: SinkDefinition, io: Io): Promise<Sample | null> {
  try {
    return await withParts(io, ['reader'], async ({ reader }) => {
      const wants = compileMatcher(definition, reader);
      for await (const row of reader.find({ limit: recentMax })) {
        if (!(await wants(row))) continue;
        return { what: `notification ${row.position}`, row, body: await reader.body(row.position) };
      }
      return null;
    });
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}

/** Sample with a fictional product, for a log without a matching notification. */
function builtInSample({ nowUs }: Pick<Io, 'nowUs'>): Sample {
  const productId = '00000000-0000-4000-8000-000000000000';
  const productName = 'EARSHOT_TEST_DELIVERY.SAFE';
  const row: NotificationRow = {
    ...{ position: 0, ackId: null, productId, productName, event: 'created' },
    ...{ subscription: 'test', subscriptionId: null, notificationDateUs: nowUs() },
    ...{ receivedAtUs: nowUs(), source: 'push', timesSeen: 1, lastSeenAtUs: nowUs(), bodyIndex: 0 },
  };
  const value = { Id: productId, Name: productName };
  return { what: 'a built-in sample', row, body: Buffer.from(JSON.stringify({ value })) };
}
