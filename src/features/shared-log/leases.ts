/** Leases: the right of one node to a job, for a time that the node prolongs. */

import { jittered } from '../../core/host/job.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { Connections } from './connection.ts';
import { answerMs, lockTimeoutMs, sqlErrors } from './database.ts';
import type { Lease, LeaseTerm, SharedLog } from './terms.ts';

/** Duration of a lease. Another node takes over after this time, and one more attempt. */
const leaseMs = 15_000;
const renewMs = 4_000;

/** The holder gives up this much earlier than the database: its own clock may run at another speed. */
const marginMs = 3_000;

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

interface LeasesOptions {
  nodeId: string;
  random: () => number;
  log: Logger;
}

export interface Leases {
  acquire(name: string, options: Parameters<SharedLog['acquireLease']>[1]): Promise<Lease>;
  /** Returns the term of a lease of this process; null for none. Throws `conflict` for a lost one. */
  current(name: string): LeaseTerm | null;
  /** Releases all leases. */
  close(): Promise<void>;
}

export function createLeases({ query }: Connections, options: LeasesOptions): Leases {
  const { nodeId, random, log } = options;
  const active = new Map<string, ActiveLease>();
  const acquireOnce = async (name: string) => {
    // Before the request: the lease begins when the database has it.
    const sinceMs = performance.now();
    const [row] = await query<{ lease_term: string; head_number: string }>(
      'SELECT * FROM earshot.acquire_lease($1, $2, $3)',
      [name, nodeId, leaseMs],
      answerMs,
    );
    if (row === undefined) return null;
    return { term: Number(row.lease_term), since: Number(row.head_number), sinceMs };
  };
  const renew = async (name: string, term: number, forMs: number) => {
    const [row] = await query<{ renewed: boolean }>(
      'SELECT earshot.renew_lease($1, $2, $3, $4) AS renewed',
      [name, nodeId, term, forMs],
      answerMs,
    );
    return row?.renewed === true;
  };
  const keep = (name: string, { term, since, sinceMs }: Acquired): Lease => {
    const lease = new ActiveLease({ name, term }, { sinceMs, renew, log });
    active.set(name, lease);
    const release = () => {
      // A lost one stays until the next: late writes of its job are refused.
      if (active.get(name) === lease && !lease.lost.aborted) active.delete(name);
      void lease.release();
    };
    const giveUp = (reason: string) => lease.lose(reason);
    return Object.assign(release, { lost: lease.lost, since, giveUp });
  };
  return {
    acquire: async (name, { waitMs, signal, isReady = () => true }) => {
      const deadlineMs = performance.now() + waitMs;
      for (;;) {
        signal?.throwIfAborted();
        // Another part of this process may have it.
        const isFree = active.get(name)?.isReleased ?? true;
        const acquired = isFree && isReady() ? await acquireOnce(name) : null;
        if (acquired !== null) return keep(name, acquired);
        const leftMs = deadlineMs - performance.now();
        if (leftMs <= 0)
          throw new AppError('conflict', `Another receiver holds the lease "${name}".`);
        await wait(Math.min(leftMs, jittered(attemptMs, random)), signal);
      }
    },
    current: (name) => active.get(name)?.current() ?? null,
    close: async () => {
      const open = [...active.values()];
      active.clear();
      await Promise.all(open.map((lease) => lease.release()));
    },
  };
}

/** Resolves after the time; rejects with the reason of the signal. */
function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
}

interface Acquired {
  term: number;
  /** The last entry before the lease. */
  since: number;
  sinceMs: number;
}

interface LeaseOptions {
  /** Start of the last renewal, by the monotonic clock. */
  sinceMs: number;
  renew: (name: string, term: number, forMs: number) => Promise<boolean>;
  log: Logger;
}

/** A lease that is renewed until it is released or lost. */
class ActiveLease {
  readonly #lease: LeaseTerm & { name: string };
  readonly #options: LeaseOptions;
  readonly #lost = new AbortController();
  #untilMs: number;
  readonly #timer: NodeJS.Timeout;
  /** Ends the lease in time, also while a renewal waits for its answer. */
  #end: NodeJS.Timeout;
  #renewing: Promise<void> | undefined;
  #released: Promise<void> | undefined;

  constructor(lease: LeaseTerm & { name: string }, options: LeaseOptions) {
    this.#lease = lease;
    this.#options = options;
    this.#untilMs = options.sinceMs + leaseMs - marginMs;
    this.#timer = setInterval(() => {
      this.#renewing ??= this.#renew().finally(() => {
        this.#renewing = undefined;
      });
    }, renewMs).unref();
    this.#end = this.#endLater();
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  get isReleased(): boolean {
    return this.#released !== undefined;
  }

  /** Checks the clock, too: after a pause of the process, no timer has run yet. */
  current(): LeaseTerm {
    if (performance.now() >= this.#untilMs) this.lose('not renewed in time');
    if (this.#lost.signal.aborted) {
      throw new AppError('conflict', 'Another receiver has taken over this job.', {
        facts: { reason: 'lease-lost' },
      });
    }
    return this.#lease;
  }

  async #renew(): Promise<void> {
    const { name, term } = this.#lease;
    const sinceMs = performance.now();
    try {
      if (await this.#options.renew(name, term, leaseMs)) {
        this.#untilMs = sinceMs + leaseMs - marginMs;
        clearTimeout(this.#end);
        this.#end = this.#endLater();
      } else this.lose('taken over');
    } catch (error) {
      this.#options.log.debug({ lease: name, reason: errorText(error) }, 'failed to renew a lease');
    }
  }

  #endLater(): NodeJS.Timeout {
    const ms = Math.max(0, this.#untilMs - performance.now());
    return setTimeout(() => this.lose('not renewed in time'), ms).unref();
  }

  lose(reason: string): void {
    if (this.#lost.signal.aborted || this.#released !== undefined) return;
    this.#stop();
    this.#options.log.warn({ lease: this.#lease.name, reason }, 'lost a lease');
    this.#lost.abort();
  }

  #stop(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#end);
  }

  /** Never rejects: without an answer, the lease expires. */
  release(): Promise<void> {
    this.#stop();
    this.#released ??= this.#giveBack();
    return this.#released;
  }

  async #giveBack(): Promise<void> {
    await this.#renewing;
    if (this.#lost.signal.aborted) return;
    const { name, term } = this.#lease;
    await this.#options.renew(name, term, 0).catch(() => undefined);
  }
}
