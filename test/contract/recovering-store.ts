/** A store as the contracts of recovered events use it. */
import type { Completeness, MissingEvent } from '../../src/domain/completeness.ts';
import type { Intake, NotificationLog, Quarantine } from '../../src/domain/ports.ts';
import { collect } from '../helpers/deliveries.ts';
import { atUs, hour } from './catalogue-events.ts';

export type RecoveringStore = Intake &
  NotificationLog &
  Pick<Quarantine, 'quarantined'> & { completeness: Completeness };

/** Gives an empty store that is closed when the test has finished. */
export type OpenRecovering = () => Promise<RecoveringStore>;

/** An hour after the events. */
export const recover = (store: RecoveringStore, events: readonly MissingEvent[], knownUpTo = 0) =>
  store.completeness.recover({ events, knownUpTo, atUs: atUs + hour });

export const rowsOf = (store: RecoveringStore) => collect(store.find({ order: 'oldest' }));
