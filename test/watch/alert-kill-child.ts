/** A watchdog in small, to be killed: raises an alert, and tells it or does not get that far. */
import { setTimeout as delay } from 'node:timers/promises';
import { openStore } from '../../src/store/store.ts';
import { createUrlSender, deliverDue } from '../../src/watch/notify.ts';
import type { WatchDeps } from '../../src/watch/situation.ts';
import { watchOnce } from '../../src/watch/watchdog.ts';

const [dataDir = '', url = ''] = process.argv.slice(2);
const nothing = () => undefined;
const nowUs = () => Date.now() * 1000;
const store = await openStore({ dataDir, nowUs });
const { completeness, alerts, administration, sinks, backups } = store;
const tellUrl = createUrlSender({ url, variable: 'EARSHOT_ALERT_URL', fetch, random: Math.random });
const context: WatchDeps = {
  ...{ completeness, alerts, administration, sinks, backups, notifications: store, nowUs },
  deliveryState: () => ({ names: [], fault: null }),
  probes: {
    certificate: async () => null,
    disk: async () => ({ freeBytes: 1, totalBytes: 2 ** 40, reserveBytes: 0 }),
    intake: async () => null,
  },
  lifetimes: () => null,
  channels: ['url'],
  sendAlert: (_channel, message, signal) => tellUrl(message, signal),
  random: Math.random,
  pause: (ms, signal) => delay(ms, undefined, { signal }).catch(nothing),
  log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  maintenance: false,
  reconcile: false,
  backupEveryHours: null,
};

// It must not outlive the test.
process.once('disconnect', () => process.exit());
await watchOnce(context);
process.send?.('raised');
// A message says that it is to be told as well.
process.once('message', () => void deliverDue(context, 'url', new AbortController().signal));
