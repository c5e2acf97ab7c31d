/** `earshot sinks test`: delivers one marked sample to a sink, outside of its queue. */
import { AppError } from '../../domain/app-error.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import { printable } from '../../domain/text.ts';
import { createRunProgram } from '../../host/run-program.ts';
import { attemptOnce, testDocument } from '../../sinks/delivery.ts';
import { compileMatcher } from '../../sinks/document.ts';
import type { SinkDefinition } from '../../sinks/registry.ts';
import { openTarget } from '../../sinks/registry.ts';
import { defineCommand, withParts } from '../command.ts';
import { type Io, pause } from '../io.ts';
import { definedSink } from '../sink-names.ts';

export const testCommand = defineCommand('test', {
  description: 'Deliver one sample to a sink, and print its answer.',
  flags: (command) => command.argument('<sink>', 'its name'),
  help: `Sends the newest notification that the sink wants, or else a built-in sample. The document has
\`"test": true\` and an id that begins with test_. The sink's place in the log does not change.

Exit codes: 0 acknowledged, 1 not acknowledged, 2 wrong usage or configuration.

Example:
  $ earshot sinks test hook`,
  run: testSink,
});

/** The newest notifications among which one is looked for that the sink wants. */
const recentMax = 200;

/** Rejects with `unavailable` where the sink does not acknowledge the sample. */
async function testSink(io: Io, _flags: object, name: string): Promise<void> {
  const definition = await definedSink(name, io);
  const sample = (await recentSample(definition, io)) ?? builtInSample(io);
  const document = testDocument(sample.row, sample.body, name, io.newId());
  const target = openTarget(definition, {
    run: createRunProgram(io),
    fetch: io.fetch,
    nowUs: io.nowUs,
    logger: { ...silent, info: (fields) => printOutput(io, fields) },
  });
  io.stderr.write(`Sending ${sample.what} to ${name} as ${document.id}.\n`);
  try {
    const answer = await attemptOnce(document, definition, { target, pause, signal: io.signal });
    if (answer.kind !== 'acknowledged') {
      throw new AppError(
        'unavailable',
        `${name} did not acknowledge the test delivery: ${answer.reason}.`,
        { advice: '`earshot doctor` checks what it needs.' },
      );
    }
    io.stdout.write(`${name} acknowledged the test delivery ${document.id}.\n`);
  } finally {
    await target.close();
  }
}

const nothing = () => undefined;

const silent = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Of a command sink. */
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

/** The newest notification that the sink wants; null without one, or without a data directory. */
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

/** A product that does not exist, for a log without a notification that the sink wants. */
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
