/** The doctor's checks of sinks: what each hands over to is there. Nothing is handed over. */
import { JetStreamApiError, jetstreamManager } from '@nats-io/jetstream';
import { errors, type NatsConnection } from '@nats-io/transport-node';
import type { Finding } from '../domain/finding.ts';
import type { SinkDefinition, SinkTarget } from '../domain/sinks.ts';
import { subscriptionEvents } from '../domain/subscription.ts';
import { reachHost } from '../http/bounded-fetch.ts';
import { connectionOptions, coveringSubject, natsFault, subjectFor } from './nats.ts';
import { openNats } from './open-nats.ts';

export interface SinkCheckMeans {
  /** Null when the program can be started, else why not. */
  findProgram: (program: string) => string | null;
  /** Names of subscriptions that may stand in a subject; where there are none, `default`. */
  subscriptions: readonly string[];
  signal: AbortSignal;
}

/** What is found about one target; the check is named after its sink. */
type TargetFinding = Omit<Finding, 'check'>;

/** One finding for each sink, all looked at together; never rejects. */
export async function checkSinks(
  definitions: readonly SinkDefinition[],
  means: SinkCheckMeans,
): Promise<Finding[]> {
  if (definitions.length === 0) {
    const message = 'earshot.config.ts names none: nothing is handed over.';
    return [{ check: 'sinks', state: 'skipped', message }];
  }
  return Promise.all(
    definitions.map(async (definition) => ({
      check: `sink ${definition.name}`,
      ...(await checkTarget(definition, means)),
    })),
  );
}

async function checkTarget(
  definition: SinkDefinition,
  means: SinkCheckMeans,
): Promise<TargetFinding> {
  const { target } = definition;
  switch (target.kind) {
    case 'command':
      return checkCommand(target, means);
    case 'webhook':
      return checkWebhook(target, means);
    case 'nats':
      return checkNats({ ...definition, target }, means);
  }
}

function checkCommand(
  { command: [program = ''] }: Extract<SinkTarget, { kind: 'command' }>,
  { findProgram }: SinkCheckMeans,
): TargetFinding {
  const fault = findProgram(program);
  if (fault === null) return { state: 'pass', message: `${program} is there, and may be run.` };
  return {
    state: 'fail',
    message: `${program} cannot be run: ${fault}.`,
    advice: 'Name the program by its whole path, and make it executable: chmod +x.',
  };
}

async function checkWebhook(
  { url, ca, secret }: Extract<SinkTarget, { kind: 'webhook' }>,
  { signal }: SinkCheckMeans,
): Promise<TargetFinding> {
  const { host } = new URL(url);
  const fault = await reachHost(url, { ca, signal });
  if (fault !== null) {
    return {
      state: 'fail',
      message: `${host} cannot be reached: ${fault}.`,
      advice:
        'Start it, or correct its address (or its `ca`) in earshot.config.ts. What comes meanwhile waits.',
    };
  }
  const signed = secret === null ? ' Nothing is signed, as there is no secretFile.' : '';
  return { state: 'pass', message: `${host} can be reached; nothing was posted.${signed}` };
}

type NatsSink = SinkDefinition & { target: Extract<SinkTarget, { kind: 'nats' }> };

async function checkNats(sink: NatsSink, means: SinkCheckMeans): Promise<TargetFinding> {
  const { name, target } = sink;
  const server = target.servers.join(', ');
  let connection: NatsConnection;
  try {
    connection = await openNats(connectionOptions(target, name), { signal: means.signal });
  } catch (error) {
    const answer = natsFault(error, target);
    return {
      state: 'fail',
      message: `${server} cannot be used: ${'reason' in answer ? answer.reason : 'it closed'}.`,
      advice:
        'Start it, or correct servers and login in earshot.config.ts. What comes meanwhile waits.',
    };
  }
  try {
    const found = await checkStreams(
      connection,
      subjectsOf(sink, means),
      coveringSubject(target.subject),
    );
    return found.state === 'pass' && isInTheClear(target) ? warnOfClearText(found) : found;
  } finally {
    await connection.close();
  }
}

/** Whether a login goes to another machine without TLS, or does so when somebody on the way wants it. */
function isInTheClear({ servers, credentials }: NatsSink['target']): boolean {
  const here = /^nats:\/\/(localhost|127\.[\d.]+|\[::1\])(:\d+)?$/i;
  return (
    credentials.kind !== 'none' &&
    servers.some((server) => !server.startsWith('tls:') && !here.test(server))
  );
}

function warnOfClearText({ message }: TargetFinding): TargetFinding {
  return {
    state: 'warn',
    message: `${message} The login and what is handed over can be read on the way: nats:// is without TLS.`,
    advice: 'Switch TLS on at the server, and name it with tls:// in earshot.config.ts.',
  };
}

async function checkStreams(
  connection: NatsConnection,
  subjects: readonly string[],
  covering: string,
): Promise<TargetFinding> {
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false });
    for (const subject of subjects) {
      if (await isHeard(manager.streams, subject)) continue;
      return {
        state: 'fail',
        message: `No stream listens to the subject ${subject}.`,
        advice: streamAdvice(covering, { isTemplate: subject !== covering }),
      };
    }
    return { state: 'pass', message: `A stream listens to ${subjects.join(', ')}.` };
  } catch (error) {
    if (isWithoutJetStream(error)) {
      return {
        state: 'fail',
        message: 'The server has no JetStream for this user.',
        advice: 'Switch it on: nats-server -js, or jetstream {} in its configuration.',
      };
    }
    // Who may publish need not be allowed to ask.
    return {
      state: 'warn',
      message: 'The server takes the login, but does not say whether a stream listens.',
      advice:
        'Nothing, if this user may do no more than publish. `earshot sinks list` shows what waits.',
    };
  }
}

/** Of two streams, NATS lets none listen to what the other one does: one that listens to a part is changed. */
function streamAdvice(covering: string, { isTemplate }: { isTemplate: boolean }): string {
  const one = `Make one: nats stream add PRODUCTS --subjects '${covering}' --defaults`;
  if (!isTemplate) return one;
  return `${one}. Where a stream listens to a part of these, change that one: nats stream edit.`;
}

async function isHeard(
  streams: Awaited<ReturnType<typeof jetstreamManager>>['streams'],
  subject: string,
): Promise<boolean> {
  const names = await streams.names(subject).next();
  return names.length > 0;
}

function isWithoutJetStream(error: unknown): boolean {
  if (error instanceof errors.NoRespondersError) return true;
  if (error instanceof JetStreamApiError) return error.status === 503;
  return error instanceof Error && error.cause !== undefined && isWithoutJetStream(error.cause);
}

/** Every subject that an item of the sink may get. */
function subjectsOf({ target, events, subscriptions }: NatsSink, means: SinkCheckMeans): string[] {
  const named = subscriptions.length > 0 ? subscriptions : means.subscriptions;
  const all = (events.length > 0 ? events : subscriptionEvents).flatMap((event) =>
    (named.length > 0 ? named : ['default']).map((subscription) =>
      subjectFor(target.subject, { event, subscription }),
    ),
  );
  return [...new Set(all)];
}
