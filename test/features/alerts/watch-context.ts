/** A watchdog with a real store, a settable clock, and simulated probes and channels. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Registration } from '../../../src/admin/account.ts';
import type { AlertKind } from '../../../src/core/terms/kinds.ts';
import type { AlertMessage } from '../../../src/features/alerts/message.ts';
import type { Alert } from '../../../src/features/alerts/terms.ts';
import type { WatchDeps } from '../../../src/features/alerts/watch-deps.ts';
import { createWatchMemory, watchOnce } from '../../../src/features/alerts/watchdog.ts';
import type { HourCoverage } from '../../../src/features/coverage/completeness.ts';
import type { Probes } from '../../../src/features/status/probes.ts';
import type { SubscriptionState } from '../../../src/features/subscriptions/state.ts';
import type { Store } from '../../../src/store/store.ts';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';

export const hourUs = 3_600_000_000;
export const dayUs = 24 * hourUs;
export const minuteUs = 60_000_000;
/** A Thursday at midnight. */
export const beginUs = Math.floor(1_795_000_000_000_000 / (7 * dayUs)) * 7 * dayUs;

export const registration = (fields: Partial<Registration> = {}): Registration => ({
  name: 'alps',
  type: 'push',
  events: ['created'],
  filter: '',
  status: 'running',
  subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
  unfinished: false,
  earlierIds: [],
  origin: 'flags',
  credentialsDigest: null,
  activityAtUs: beginUs,
  notifiedAtUs: beginUs,
  runningSeenAtUs: beginUs,
  pausedSeenAtUs: null,
  changedByPerson: false,
  reported: [],
  ...fields,
});

export const covered = (hour: number, fields: Partial<HourCoverage> = {}): HourCoverage => ({
  subscription: 'alps',
  event: 'created',
  hourUs: beginUs + hour * hourUs,
  expected: 10,
  pushed: 10,
  late: 0,
  recovered: 0,
  missing: 0,
  comparedAtUs: beginUs + (hour + 2) * hourUs,
  ...fields,
});

/** A subscription of which nothing is known. */
export function view(
  fields: Partial<SubscriptionState> = {},
  changes: Partial<Registration> = {},
): SubscriptionState {
  const known = registration(changes);
  const { name, type, status, subscriptionId: id, filter, events } = known;
  return {
    ...{ name, id, type, filter, events: [...events], path: '/notifications/alps' },
    ...{ state: 'running', pausedOnPurpose: status === 'paused', registration: known },
    ...{ changedByPerson: known.changedByPerson, runningSeenAtUs: known.runningSeenAtUs },
    ...{ pausedSeenAtUs: known.pausedSeenAtUs, lastDeliveryAtUs: null, pausesAtUs: null },
    ...{ cancelsAtUs: null, queue: null, senders: [], gaps: [] },
    ...{ maintenance: false, reconcile: false, knownSinceUs: beginUs },
    ...{ arrivals: [], coverage: [], watched: [], ...fields },
  };
}

/** An alert that is active since a time. */
export const activeAlert = (kind: AlertKind, raisedAtUs: number): Alert => ({
  ...{ id: 1, kind, subject: 'alps', level: 'warning', text: '', evidence: [], nextStep: '' },
  ...{ raisedAtUs, resolvedAtUs: null },
});

/** Probes that find nothing to check. */
export const quiet: Probes = {
  certificate: async () => null,
  disk: async () => null,
  intake: async () => null,
};

export type TestContext = Awaited<ReturnType<typeof openContext>>;

/** Opens a watchdog, by default with one subscription that is registered at `beginUs`. */
export async function openContext(
  parts: Partial<WatchDeps> = {},
  registrations: readonly Registration[] = [registration()],
) {
  let nowUs = beginUs;
  const opened = await openSqliteStore({ nowUs: () => nowUs });
  let { store } = opened;
  for (const save of registrations) await store.administration.commit({ save });
  const sent: AlertMessage[] = [];
  const logged: { level: string; message: string; fields: object }[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void logged.push({ level, message, fields });
  const context: WatchDeps = {
    ...portsOf(store),
    probes: quiet,
    deliveryState: () => ({ names: null, fault: null }),
    senders: { url: async (message) => void sent.push(message) },
    nowUs: () => nowUs,
    random: () => 0.5,
    pause: (ms, signal) => delay(ms, undefined, { signal, ref: false }).catch(() => undefined),
    log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
    maintenance: false,
    reconcile: false,
    backupEveryHours: null,
    ...parts,
  };
  let memory = createWatchMemory();
  let number = 0;
  const activeAlerts = () => store.alerts.alerts({ all: false, limit: 99 });
  /** Checks once, with a memory that stays until `restart`, and returns the active alerts. */
  const check = async () => {
    await watchOnce(context, memory);
    return activeAlerts();
  };
  const setNow = (us: number) => {
    nowUs = us;
  };
  /** Records an uptime since the beginning, and pushes at these times. */
  const live = async (toUs: number, pushedAtUs: readonly number[] = []) => {
    await store.completeness.recordUptime({ fromUs: beginUs, toUs });
    const pushes = pushedAtUs.map((receivedAtUs) => {
      number += 1;
      return delivery(notification(number), { subscription: 'alps', receivedAtUs });
    });
    await Promise.all(pushes.map((one) => store.accept(one)));
    setNow(toUs);
  };
  const checkAt = (us: number) => {
    setNow(us);
    return check();
  };
  const restart = async () => {
    store = await opened.reopen();
    Object.assign(context, portsOf(store));
    memory = createWatchMemory();
  };
  return {
    ...{ context, sent, logged, setNow, live, check, checkAt, restart, activeAlerts },
    get store() {
      return store;
    },
  };
}

function portsOf(store: Store) {
  const { completeness, alerts, administration, sinks, backups } = store;
  return { completeness, alerts, administration, sinks, backups, notifications: store };
}

/** Hours from one to another (excluded), as times. */
export function moments(fromHour: number, toHour: number): number[] {
  return Array.from({ length: toHour - fromHour }, (_, i) => beginUs + (fromHour + i) * hourUs);
}
