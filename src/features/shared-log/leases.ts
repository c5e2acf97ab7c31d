/** Leases: the right of one node to a job, for a time that the node prolongs. */

import { setTimeout as delay } from 'node:timers/promises';
import type { AcquireLock, Release } from '../../core/host/job.ts';
import { jittered } from '../../core/host/job.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { answerMs, type Connections, lockTimeoutMs, ownError, sqlErrors } from './connection.ts';

/** Duration of a lease. Another node takes over after this time, and one more attempt. */
const leaseMs = 15_000;
const renewMs = 4_000;

/** The holder gives up this much earlier than the database: its own clock may run at another speed. */
const marginMs = 4_000;

/** Interval of the check whether a lease must be renewed, or has ended. */
const checkMs = 500;

/** Interval of attempts to acquire a lease. */
const attemptMs = 2_000;

/** Tables and functions of leases. */
export const leaseSql = `
    CREATE TABLE earshot.lease (
      name text COLLATE "C" PRIMARY KEY,
      holder uuid,
      term bigint NOT NULL,
      expires_at timestamptz NOT NULL
    );

    -- Gives a free lease to a node. Returns its term and the last entry before it; no row when another node holds it.
    CREATE FUNCTION earshot.acquire_lease(lease_name text, node_id uuid, lease_ms integer)
    RETURNS TABLE (lease_term bigint, head_number bigint)
    LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
      INSERT INTO earshot.lease VALUES (lease_name, NULL, 0, '-infinity') ON CONFLICT DO NOTHING;
      IF NOT EXISTS (SELECT 1 FROM earshot.lease
        WHERE name = lease_name AND (holder IS NULL OR expires_at < clock_timestamp()))
      THEN
        RETURN;
      END IF;
      PERFORM earshot.begin_durable(false);
      -- Before the lease: entries under the previous term are complete when the term changes.
      SELECT number INTO head_number FROM earshot.head WHERE state = 'open' FOR UPDATE;
      IF NOT FOUND THEN
        RAISE EXCEPTION 'the log is not open' USING ERRCODE = '${sqlErrors.notOpen}';
      END IF;
      UPDATE earshot.lease SET holder = node_id, term = term + 1,
        expires_at = clock_timestamp() + make_interval(secs => lease_ms / 1000.0)
      WHERE name = lease_name AND (holder IS NULL OR expires_at < clock_timestamp())
      RETURNING term INTO lease_term;
      IF FOUND THEN
        RETURN NEXT;
      END IF;
    END $$;

    -- Returns true when this term still had the lease, which is now prolonged. 0 ms releases it.
    CREATE FUNCTION earshot.renew_lease(lease_name text, node_id uuid, lease_term bigint, lease_ms integer)
    RETURNS boolean
    LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
      PERFORM set_config('lock_timeout', '${lockTimeoutMs}ms', true);
      -- A renewal that a failover loses ends the lease early, which is safe.
      PERFORM set_config('synchronous_commit', 'local', true);
      UPDATE earshot.lease SET holder = CASE WHEN lease_ms > 0 THEN node_id END,
        expires_at = clock_timestamp() + make_interval(secs => lease_ms / 1000.0)
      WHERE name = lease_name AND holder = node_id AND term = lease_term
        AND EXISTS (SELECT 1 FROM earshot.head WHERE state = 'open');
      RETURN FOUND;
    END $$;
`;

/** A right to a job. The term grows with each new holder. */
export interface LeaseTerm {
  name: string;
  term: number;
}

/** A lease, with the function that releases it. */
export interface Lease extends Release {
  readonly lost: AbortSignal;
  /** The last entry before this term: entries of earlier holders are not after it. */
  readonly since: number;
  /** Gives up the lease as if it had expired: it is not renewed, and writes under it are refused. */
  giveUp(reason: string): void;
}

/** `isReady`: each attempt is made only if this node can use the lease. */
type AcquireOptions = Parameters<AcquireLock>[1] & { isReady?: () => boolean };

interface LeasesOptions {
  nodeId: string;
  random: () => number;
  log: Logger;
}

export function createLeases(
  { query, value }: Connections,
  { nodeId, random, log }: LeasesOptions,
) {
  const active = new Map<string, ReturnType<typeof keep>>();
  const acquireOnce = async (name: string): Promise<Lease | null> => {
    // Before the request: the lease begins when the database has it.
    const sinceMs = performance.now();
    const [row] = await query<{ lease_term: number; head_number: number }>(
      'SELECT * FROM earshot.acquire_lease($1, $2, $3)',
      [name, nodeId, leaseMs],
      answerMs,
    );
    if (row === undefined) return null;
    const { lease_term: term, head_number: since } = row;
    const renew = async (forMs: number) => {
      const sql = 'SELECT earshot.renew_lease($1, $2, $3, $4)';
      return (await value<boolean>(sql, [name, nodeId, term, forMs], answerMs)) === true;
    };
    const lease = keep({ name, term }, { sinceMs, renew, log });
    active.set(name, lease);
    const { lost, lose: giveUp, release } = lease;
    return Object.assign(() => void release(), { lost, since, giveUp });
  };
  return {
    /** Acquires a lease. Rejects as `AcquireLock` does. */
    acquireLease: async (
      name: string,
      { waitMs, signal, isReady = () => true }: AcquireOptions,
    ): Promise<Lease> => {
      const deadlineMs = performance.now() + waitMs;
      for (;;) {
        signal?.throwIfAborted();
        // Another part of this process may have it.
        const isFree = active.get(name)?.isReleased() ?? true;
        const lease = isFree && isReady() ? await acquireOnce(name) : null;
        if (lease !== null) return lease;
        const leftMs = deadlineMs - performance.now();
        if (leftMs <= 0)
          throw new AppError('conflict', `Another receiver holds the lease "${name}".`);
        const wait = delay(Math.min(leftMs, jittered(attemptMs, random)), undefined, { signal });
        await wait.catch(() => signal?.throwIfAborted());
      }
    },
    /** Returns the term of a lease of this process; null for none. Throws `conflict` for a lost one. */
    currentLease: (name: string): LeaseTerm | null => active.get(name)?.current() ?? null,
    releaseAll: async () => {
      await Promise.all([...active.values()].map((lease) => lease.release()));
    },
  };
}

interface KeepOptions {
  /** Time of the request that acquired it, by the monotonic clock. */
  sinceMs: number;
  /** Resolves with false when another node has the lease. */
  renew: (forMs: number) => Promise<boolean>;
  log: Logger;
}

/** Renews a lease until it is released or lost. */
function keep(lease: LeaseTerm, { sinceMs, renew, log }: KeepOptions) {
  const { name } = lease;
  const lost = new AbortController();
  let renewedMs = sinceMs;
  let renewing: Promise<void> | undefined;
  let released: Promise<void> | undefined;
  const lose = (reason: string) => {
    if (lost.signal.aborted || released !== undefined) return;
    clearInterval(timer);
    log.warn({ lease: name, reason }, 'lost a lease');
    lost.abort();
  };
  const renewNow = async () => {
    const startedMs = performance.now();
    try {
      if (await renew(leaseMs)) renewedMs = startedMs;
      else lose('taken over');
    } catch (error) {
      log.debug({ lease: name, reason: errorText(error) }, 'failed to renew a lease');
    }
  };
  const check = () => {
    const ageMs = performance.now() - renewedMs;
    if (ageMs >= leaseMs - marginMs) return lose('not renewed in time');
    if (ageMs < renewMs) return;
    renewing ??= renewNow().finally(() => {
      renewing = undefined;
    });
  };
  const timer = setInterval(check, checkMs).unref();
  const giveBack = async () => {
    await renewing;
    // Without an answer, the lease expires.
    if (!lost.signal.aborted) await renew(0).catch(() => undefined);
  };
  return {
    lost: lost.signal,
    lose,
    isReleased: () => released !== undefined,
    /** Returns null after the release, except for a lost lease: late writes of its job are refused. */
    current: () => {
      // After a pause of the process, no timer has run yet.
      if (released === undefined) check();
      if (lost.signal.aborted) throw ownError(sqlErrors.leaseLost);
      return released === undefined ? lease : null;
    },
    release: () => {
      clearInterval(timer);
      released ??= giveBack();
      return released;
    },
  };
}
