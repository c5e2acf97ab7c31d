/** The program: its parts, and its features, one line each. The only file that names all of them. */
import { admin } from './admin/index.ts';
import { core } from './core/index.ts';
import { alerts } from './features/alerts/index.ts';
import { backup } from './features/backup/index.ts';
import { certificate } from './features/certificate/index.ts';
import { coverage } from './features/coverage/index.ts';
import { credentials } from './features/credentials/index.ts';
import { demo } from './features/demo/index.ts';
import { doctor } from './features/doctor/index.ts';
import { live } from './features/live/index.ts';
import { map } from './features/map/index.ts';
import { messages } from './features/messages/index.ts';
import { metrics } from './features/metrics/index.ts';
import { notifications } from './features/notifications/index.ts';
import { odata } from './features/odata/index.ts';
import { products } from './features/products/index.ts';
import { pruning } from './features/pruning/index.ts';
import { pull } from './features/pull/index.ts';
import { quarantine } from './features/quarantine/index.ts';
import { setup } from './features/setup/index.ts';
import { sharedLog } from './features/shared-log/index.ts';
import { sinks } from './features/sinks/index.ts';
import { stac } from './features/stac/index.ts';
import { status } from './features/status/index.ts';
import { subscriptions } from './features/subscriptions/index.ts';
import { summary } from './features/summary/index.ts';
import { timeliness } from './features/timeliness/index.ts';
import { receiver } from './receiver/index.ts';
import { store } from './store/index.ts';

/**
 * Each has one line, in the order of their commands in the help. `core`, `receiver`, `store` and `admin` have the same contract, but
 * cannot be removed.
 */
export const app = [
  demo,
  setup,
  receiver,
  store,
  admin,
  status,
  notifications,
  live,
  map,
  products,
  timeliness,
  coverage,
  pull,
  subscriptions,
  credentials,
  certificate,
  doctor,
  messages,
  sinks,
  quarantine,
  summary,
  backup,
  pruning,
  stac,
  odata,
  metrics,
  sharedLog,
  alerts,
  core,
];
