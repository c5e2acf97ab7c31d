/** Opens a store, stores one notification, and exits. */

import { delivery, notification } from '../helpers/deliveries.ts';
import { openStore } from '../helpers/store.ts';

const [, , dataDir = '', number = ''] = process.argv;
const store = await openStore({ dataDir, nowUs: () => 0 });
await store.accept(delivery(notification(Number(number))));
await store.close();
