/** `earshot sinks test`: delivers one marked sample to a sink, outside of its queue. */
import { dataSections, loadConfig } from '../../config/config.ts';
import { faultySinks, loadEachSink } from '../../config/sinks.ts';
import { AppError } from '../../domain/app-error.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import type { SinkDefinition } from '../../domain/sinks.ts';
import { printable } from '../../domain/text.ts';
import { attemptOnce, testDocument } from '../../sinks/delivery.ts';
import { compileWants } from '../../sinks/document.ts';
import { openTarget } from '../../sinks/registry.ts';
import { openStoreReader, type StoreReader } from '../../store/store.ts';
import { type Io, pause } from '../io.ts';
import { createRunProgram } from '../run-program.ts';
import { unknownSink } from '../sink-names.ts';

/** The newest notifications among which one is looked for that the sink wants. */
const recentMax = 200;

/** Rejects with `unavailable` where the sink does not acknowledge the sample. */
export async function testSink(io: Io, name: string): Promise<void> {
  const definition = await definitionOf(name, io);
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
    if (answer.kind !== 'taken') {
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

async function definitionOf(name: string, io: Pick<Io, 'workingDir'>): Promise<SinkDefinition> {
  const { definitions, faulty } = await loadEachSink(io.workingDir);
  const definition = definitions.find((one) => one.name === name);
  if (definition !== undefined) return definition;
  const fault = faulty.filter((one) => one.name === name);
  if (fault.length > 0) throw faultySinks(io.workingDir, fault);
  const known = [...definitions, ...faulty].map((one) => one.name);
  throw unknownSink(name, known, io);
}

interface Sample {
  what: string;
  row: NotificationRow;
  body: Uint8Array;
}

/** The newest notification that the sink wants; null without one, or without a data directory. */
async function recentSample(definition: SinkDefinition, io: Io): Promise<Sample | null> {
  let store: StoreReader | undefined;
  try {
    store = openStoreReader(loadConfig(io, dataSections).dataDir);
    const wants = compileWants(definition, store);
    for await (const row of store.find({ limit: recentMax })) {
      if (!(await wants(row))) continue;
      return { what: `notification ${row.position}`, row, body: await store.body(row.position) };
    }
    return null;
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  } finally {
    await store?.close();
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
