/** Gathers the status of a receiver. A part that fails does not affect the others. */

import { setTimeout as delay } from 'node:timers/promises';
import { AppError, errorText, isAppError } from '../terms/app-error.ts';
import { evaluateStatus, type Status } from './status.ts';
import type { StatusFacts, StatusPart, StatusSources } from './status-part.ts';

/** A part that takes longer is reported as failed. */
const partTimeoutMs = 5_000;

/** Lifetime of a gathered status: more frequent requests get the same one. */
const freshUs = 5_000_000;

/** Returns a function that gives the current status. Concurrent calls share one result. Never rejects. */
export function createStatus(
  parts: readonly StatusPart[],
  sources: StatusSources,
): () => Promise<Status> {
  const { nowUs } = sources.io;
  const gatherNow = createGather(parts, sources);
  let latest: Status | undefined;
  let gathering: Promise<Status> | undefined;
  const gather = async () => {
    try {
      latest = await gatherNow();
      return latest;
    } finally {
      gathering = undefined;
    }
  };
  return async () => {
    const ageUs = latest === undefined ? freshUs : nowUs() - latest.atUs;
    // The age is negative after the clock was set back.
    if (latest !== undefined && ageUs >= 0 && ageUs < freshUs) return latest;
    gathering ??= gather();
    return gathering;
  };
}

/** Returns a function that reads all parts. It never rejects: parts that fail are listed in `failures`. */
export function createGather(
  parts: readonly StatusPart[],
  sources: StatusSources,
): () => Promise<Status> {
  const opened = parts.map((part) => ({ part, read: part.open(sources).read }));
  return async () => {
    const atUs = sources.io.nowUs();
    const found = await Promise.all(
      opened.map(async ({ part: { name, unknown }, read }) => {
        try {
          return { facts: read === undefined ? unknown : await withinTime(() => read(atUs)) };
        } catch (error) {
          return {
            facts: unknown,
            failure: { part: name, reason: reasonOf(name, error, sources) },
          };
        }
      }),
    );
    const failures = found.flatMap(({ failure }) => failure ?? []);
    const rejectedConfig = await sources.rejected();
    const base = {
      ...{ atUs, version: sources.version, rejectedConfig, hasEndpoint: hasEndpoint(sources) },
      // A rejected file is one finding: rules in it cannot be read for the same reason.
      failures: failures.filter(({ reason }) => reason !== rejectedConfig),
      ...{ receiver: null, alerts: [] },
    };
    // Each feature reads the facts that it declares.
    return evaluateStatus(
      parts,
      Object.assign({}, base, ...found.map(({ facts }) => facts)) as StatusFacts,
    );
  };
}

/** True with unreadable settings. */
function hasEndpoint({ setting }: Pick<StatusSources, 'setting'>): boolean {
  try {
    return setting('listen') !== null;
  } catch (error) {
    if (isAppError(error, 'configuration')) return true;
    throw error;
  }
}

async function withinTime<Value>(read: () => Promise<Value>): Promise<Value> {
  const done = new AbortController();
  const timeout = delay(partTimeoutMs, undefined, { signal: done.signal }).then(() => {
    throw new AppError('unavailable', `No answer within ${partTimeoutMs / 1_000} s.`);
  });
  try {
    return await Promise.race([read(), timeout]);
  } finally {
    done.abort();
  }
}

/** Describes an error. The text of an unexpected one is written to the log only. */
function reasonOf(part: string, error: unknown, { log }: Pick<StatusSources, 'log'>): string {
  if (isAppError(error) && error.code !== 'internal') {
    return [errorText(error), ...error.details].join(' ');
  }
  log.warn({ part, err: error }, 'failed to read a part of the status');
  return 'Internal error; see the log.';
}
