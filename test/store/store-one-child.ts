/** Opens a store, stores one notification, and exits. */
import { openStore } from '../../src/store/store.ts';
import { delivery, notification } from '../helpers/deliveries.ts';

const [, , dataDir = '', number = ''] = process.argv;
const store = await openStore({ dataDir, nowUs: () => 0 });
await store.accept(delivery(notification(Number(number))));
await store.close();
