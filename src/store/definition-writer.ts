/** Remembers since when a subscription has asked for what, as registrations come and go. */
import type { Database } from 'better-sqlite3';
import type { AdministrationChange } from '../domain/account.ts';
import { notificationDelayUs } from '../domain/coverage.ts';
import { sortedEvents } from '../domain/subscription.ts';

interface Newest {
  fromUs: number;
  events: string;
  filter: string;
}

/** The function is called before the change is made, in the same transaction. */
export function prepareDefine(database: Database) {
  const newest = database.prepare<[string], Newest>(
    `SELECT from_us AS fromUs, events, filter FROM subscription_definition
     WHERE subscription = ? ORDER BY from_us DESC, id DESC LIMIT 1`,
  );
  const insert = database.prepare(
    `INSERT INTO subscription_definition (subscription, from_us, events, filter)
     VALUES (?, ?, ?, ?)`,
  );
  const activity = database
    .prepare<[string], number>('SELECT activity_at_us FROM registration WHERE name = ?')
    .pluck();

  function define(name: string, wanted: { events: string; filter: string }, atUs: number): void {
    const { events, filter } = wanted;
    const last = newest.get(name) ?? { fromUs: 0, ...givenUp };
    if (last.events === events && last.filter === filter) return;
    const fromUs = last.events === givenUp.events ? atUs - notificationDelayUs : atUs;
    // A clock that was set back does not make a definition older than the one it follows.
    insert.run(name, Math.max(fromUs, last.fromUs), events, filter);
  }

  return ({ forget, save, history = [], closeGaps }: AdministrationChange): void => {
    const times = history.map(({ atUs }) => atUs);
    const notedAtUs = times.length > 0 ? Math.max(...times) : undefined;
    if (forget !== undefined && forget !== save?.name) {
      const atUs = notedAtUs ?? closeGaps?.toUs ?? activity.get(forget);
      if (atUs !== undefined) define(forget, givenUp, atUs);
    }
    // Until it is finished, the catalogue may have the old one, or none.
    if (save === undefined || save.unfinished) return;
    const events = JSON.stringify(sortedEvents(save.events));
    define(save.name, { events, filter: save.filter }, notedAtUs ?? save.activityAtUs);
  };
}

const givenUp = { events: '[]', filter: '' };
