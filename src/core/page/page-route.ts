/** A page of the private listener: its path, its data, and its content. */
import type { AdministrationReader } from '../../admin/account.ts';
import type { AlertReader } from '../../features/alerts/terms.ts';
import type { CompletenessReader } from '../../features/coverage/completeness.ts';
import type { SinkReader } from '../../features/sinks/terms.ts';
import type { Status } from '../../features/status/status.ts';
import type { SummaryReader } from '../../features/summary/terms.ts';
import type { Products } from '../../filter/products.ts';
import { counted } from '../terms/formats.ts';
import type { NotificationLog, Quarantine } from '../terms/ports.ts';
import type { Assets } from './assets.ts';
import type { PageContent, PagePath } from './layout.ts';
import { type Html, html, withCommands } from './markup.ts';
import type { PageState } from './page-state.ts';

/** The ports that pages read. */
export interface PageParts {
  products: Products;
  notifications: NotificationLog;
  summaries: SummaryReader;
  completeness: CompletenessReader;
  quarantine: Pick<Quarantine, 'quarantined' | 'quarantinedCount' | 'quarantineEntry'>;
  alerts: AlertReader;
  sinks: SinkReader;
  administration: AdministrationReader;
  status: () => Promise<Status>;
  /** Returns why hours are not compared automatically; null when they are. */
  comparisonOff: () => string | null;
  /** Returns true if alerts are sent to a URL or a command. */
  hasAlertChannel: () => boolean;
  /** Base of download URLs. */
  catalogueUrl: string;
  /** Requests need the password of the private listener. */
  passwordNeeded: boolean;
  nowUs: () => number;
}

export interface PageRequest {
  url: URL;
  state: PageState;
  /** Time at which the page is rendered. */
  nowUs: number;
  /** Last part of the path of a page about one item, decoded; '' for a list. */
  id: string;
  status: Status;
  assets: Assets;
  /** Aborted when the client has closed the connection, and after the timeout of queries. */
  signal: AbortSignal;
}

/** Another address of the page, with the same content: the state in its canonical form. */
export interface Redirect {
  location: string;
}

export interface PageRoute {
  /** Page in the navigation. */
  path: PagePath;
  /** Default period, such as `24h`. */
  back: string;
  /** Renders the page. Rejects with `invalid` for a state that cannot be shown, and as the ports do. */
  list(parts: PageParts, request: PageRequest): Promise<PageContent | Redirect>;
  /** Renders the page about one item, below the path. Rejects with `not_found`. */
  item?(parts: PageParts, request: PageRequest): Promise<PageContent>;
}

/** Returns the names of registered subscriptions, and of the paths that have received notifications. */
export async function subscriptionNames({
  administration,
}: Pick<PageParts, 'administration'>): Promise<string[]> {
  const [registered, marks] = await Promise.all([
    administration.registrations(),
    administration.deliveryMarks(),
  ]);
  const names = [...registered.map(({ name }) => name), ...marks.map((one) => one.subscription)];
  return [...new Set(names)].filter((name) => name !== null).toSorted();
}

/**
 * Returns the number of notifications that the product index lacks. Call it before reading the index: if the index
 * catches up meanwhile, the page is newer than it states.
 */
export async function indexLag({ products, notifications }: PageParts): Promise<number> {
  const [indexed, last] = await Promise.all([
    products.indexedPosition(),
    notifications.lastPosition(),
  ]);
  return Math.max(0, last - indexed);
}

export function lagNote(lag: number): Html | string {
  if (lag === 0) return '';
  const missing = counted(lag, 'notification is', 'notifications are');
  return html`<p class="lag">${missing} not indexed yet. If this stays, check the index: ${withCommands('`earshot admin index`')}</p>`;
}
