/** What summaries have spent, and what that leaves of the budget. Windows roll: the last hour, the last 24. */
import type { Database } from 'better-sqlite3';
import type { SummaryBudget, SummarySpending } from '../domain/summaries.ts';

const hourUs = 3_600_000_000;
const dayUs = 24 * hourUs;

/** A limit that is reached, and when enough of what counts against it has run out. */
export interface ReachedLimit {
  limit: keyof SummaryBudget;
  freeAtUs: number;
}

/** A request that a clock dates into the future, because it was set back since, counts as one of now. */
export function spending(database: Database, nowUs: number): SummarySpending {
  const row = database
    .prepare<[number, number], SummarySpending>(
      `SELECT count(*) FILTER (WHERE asked_at_us > ?) AS requestsLastHour,
         count(*) AS requestsLastDay, coalesce(sum(tokens), 0) AS tokensLastDay
       FROM summary_request WHERE asked_at_us > ?`,
    )
    .get(nowUs - hourUs, nowUs - dayUs);
  return row ?? { requestsLastHour: 0, requestsLastDay: 0, tokensLastDay: 0 };
}

/**
 * Tells which limit keeps a request of so many tokens from being sent now; of several, the one that
 * takes longest. Null when none does. Where waiting does not help, because a limit is 0 or less than the
 * one request, it says to look again when the limit's window is over. Reads the requests of one day, in
 * the index.
 */
export function prepareReachedLimit(database: Database) {
  // The request that must run out, and all older ones with it, for fewer than the limit to be left.
  const requestAt = database
    .prepare<[number, number], number>(
      `SELECT asked_at_us FROM summary_request WHERE asked_at_us > ?
       ORDER BY asked_at_us DESC LIMIT 1 OFFSET ?`,
    )
    .pluck();
  const tokensSince = database
    .prepare<[number], number>(
      'SELECT coalesce(sum(tokens), 0) FROM summary_request WHERE asked_at_us > ?',
    )
    .pluck();
  // Counted from the newest request back, the first one with which they are too many.
  const tokensAt = database
    .prepare<[number, number], number>(
      `SELECT asked_at_us FROM
         (SELECT asked_at_us, sum(tokens) OVER (ORDER BY asked_at_us DESC, id DESC) AS sum_tokens
          FROM summary_request WHERE asked_at_us > ?)
       WHERE sum_tokens > ? ORDER BY asked_at_us DESC LIMIT 1`,
    )
    .pluck();

  return (options: {
    budget: SummaryBudget;
    tokens: number;
    nowUs: number;
  }): ReachedLimit | null => {
    const { budget, tokens, nowUs } = options;
    const requestsFreeAtUs = (allowed: number, windowUs: number) => {
      const atUs = allowed < 1 ? nowUs : requestAt.get(nowUs - windowUs, allowed - 1);
      return atUs === undefined ? nowUs : atUs + windowUs;
    };
    const tokensFreeAtUs = () => {
      const room = budget.tokensPerDay - tokens;
      if (room < 0 || budget.tokensPerDay < 1) return nowUs + dayUs;
      const sinceUs = nowUs - dayUs;
      if ((tokensSince.get(sinceUs) ?? 0) <= room) return nowUs;
      return (tokensAt.get(sinceUs, room) ?? nowUs) + dayUs;
    };
    const limits: ReachedLimit[] = [
      { limit: 'requestsPerHour', freeAtUs: requestsFreeAtUs(budget.requestsPerHour, hourUs) },
      { limit: 'requestsPerDay', freeAtUs: requestsFreeAtUs(budget.requestsPerDay, dayUs) },
      { limit: 'tokensPerDay', freeAtUs: tokensFreeAtUs() },
    ];
    const longest = limits.reduce((one, other) => (other.freeAtUs > one.freeAtUs ? other : one));
    return longest.freeAtUs > nowUs ? longest : null;
  };
}
