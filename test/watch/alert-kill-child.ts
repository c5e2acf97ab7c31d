/** A minimal watchdog to be killed: raises an alert, and sends it on request. */
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
const sendToUrl = createUrlSender({
  url,
  variable: 'EARSHOT_ALERT_URL',
  fetch,
  random: Math.random,
});
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
  sendAlert: (_channel, message, signal) => sendToUrl(message, signal),
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
// A message from the parent requests the delivery.
process.once('message', () => void deliverDue(context, 'url', new AbortController().signal));
