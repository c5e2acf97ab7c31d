/** A watchdog with a real store, a settable clock, and simulated probes and channels. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Registration } from '../../../src/admin/account.ts';
import { type AnyWatch, type StatusPart, watchOne } from '../../../src/core/status/status.ts';
import { dayUs, hourUs, minuteUs } from '../../../src/core/terms/dates.ts';
import type { Alert } from '../../../src/core/terms/evaluation.ts';
import type { DiskSpace } from '../../../src/core/terms/ports.ts';
import { createWatchMemory, type WatchDeps, watchOnce } from '../../../src/features/alerts/job.ts';
import type { AlertMessage } from '../../../src/features/alerts/notify.ts';
import { type Certificate, certificateCheck } from '../../../src/features/certificate/status.ts';
import type { HourCoverage } from '../../../src/features/coverage/completeness.ts';
import type { KnownNode } from '../../../src/features/shared-log/postgres-log.ts';
import { receiverCheck } from '../../../src/features/shared-log/status.ts';
import type { DeliveryState } from '../../../src/features/sinks/terms.ts';
import type { SubscriptionState } from '../../../src/features/subscriptions/state.ts';
import { intakeCheck } from '../../../src/receiver/status.ts';
import { diskCheck } from '../../../src/store/status.ts';
import type { Store } from '../../../src/store/store.ts';
import { registrationOf } from '../../admin/samples.ts';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { testIo } from '../../helpers/fake-io.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { statusParts } from '../../helpers/status.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { settingWith } from '../../receiver/serve-config.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';

export { dayUs, hourUs, minuteUs };
/** A Thursday at midnight. */
export const beginUs = Math.floor(1_795_000_000_000_000 / (7 * dayUs)) * 7 * dayUs;

export const registration = (fields: Partial<Registration> = {}): Registration =>
  registrationOf({
    ...{ filter: '', subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb' },
    ...{ credentialsDigest: null, activityAtUs: beginUs, notifiedAtUs: beginUs },
    ...{ runningSeenAtUs: beginUs, ...fields },
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
    ...{ coverage: [], watched: [], ...fields },
  };
}

/** An alert that is active since a time. */
export const activeAlert = (kind: string, raisedAtUs: number): Alert => ({
  ...{ id: 1, kind, subject: 'alps', level: 'warning', text: '', evidence: [], nextStep: '' },
  ...{ raisedAtUs, resolvedAtUs: null },
});

/** Answers of the machine, instead of its files, disk and database. */
interface Probes {
  certificate(): Promise<Certificate | null>;
  disk(): Promise<DiskSpace | null>;
  intake(): Promise<string | null>;
  receivers?(): Promise<readonly KnownNode[]>;
}

/** Probes that find nothing to check. */
export const quiet: Probes = {
  certificate: async () => null,
  disk: async () => null,
  intake: async () => null,
};

/** The parts of the program, with simulated probes. */
function probedParts(probes: () => Probes): StatusPart[] {
  const watches: Record<string, () => AnyWatch[]> = {
    certificate: () => [watchOne(certificateCheck, () => probes().certificate())],
    disk: () => [watchOne(diskCheck, () => probes().disk())],
    receiver: () => [watchOne(intakeCheck, () => probes().intake())],
    receivers: () => [
      {
        checks: [receiverCheck],
        read: async () => {
          const nodes = (await probes().receivers?.()) ?? [];
          return nodes.map((node) => [node.name, node]);
        },
      },
    ],
  };
  return statusParts.map((part) => {
    const watch = watches[part.name];
    return watch === undefined ? part : { ...part, open: () => ({ watch }) };
  });
}

/** Ports of the watchdog, the probes, and the jobs and settings of its receiver. */
interface WatchOptions extends WatchDeps {
  probes: Probes;
  deliveryState: () => DeliveryState;
  maintenance: boolean;
  reconcile: boolean;
  backupEveryHours: number | null;
}

export type TestContext = Awaited<ReturnType<typeof openContext>>;

/** Opens a watchdog, by default with one subscription that is registered at `beginUs`. */
export async function openContext(
  parts: Partial<WatchOptions> = {},
  registrations: readonly Registration[] = [registration()],
) {
  let nowUs = beginUs;
  const opened = await openSqliteStore();
  let { store } = opened;
  for (const save of registrations) await store.administration.commit({ save });
  const workingDir = temporaryDirectory();
  const sent: AlertMessage[] = [];
  const sourcesOf = (of: Store): WatchDeps['sources'] => ({
    store: of,
    setting: (name) => {
      const { reconcile, backupEveryHours: everyHours } = context;
      const backup = { folder: everyHours === null ? null : '/backups', everyHours, keep: 7 };
      return settingWith({ reconcile, backup: backup as never })(name);
    },
    receiver: async () => null,
    running: {
      store: of,
      job: (name) => {
        if (name === 'sinks') return { state: () => context.deliveryState() };
        return name === 'maintenance' && context.maintenance ? {} : undefined;
      },
    },
    version: '',
    io: testIo({ workingDir }),
    log: { warn: () => undefined },
  });
  const context: WatchOptions = {
    sources: sourcesOf(store),
    alerts: store.alerts,
    parts: probedParts(() => context.probes),
    probes: quiet,
    deliveryState: () => ({ names: null, fault: null }),
    senders: { url: async (message) => void sent.push(message) },
    nowUs: () => nowUs,
    random: () => 0.5,
    pause: (ms, signal) => delay(ms, undefined, { signal, ref: false }).catch(() => undefined),
    log: silentLog,
    maintenance: false,
    reconcile: false,
    backupEveryHours: null,
    ...parts,
  };
  let memory = createWatchMemory(context);
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
    Object.assign(context, { alerts: store.alerts, sources: sourcesOf(store) });
    memory = createWatchMemory(context);
  };
  return {
    ...{ context, workingDir, sent, setNow, live, check, checkAt, restart, activeAlerts },
    get store() {
      return store;
    },
  };
}

/** Hours from one to another (excluded), as times. */
export function moments(fromHour: number, toHour: number): number[] {
  return Array.from({ length: toHour - fromHour }, (_, i) => beginUs + (fromHour + i) * hourUs);
}
