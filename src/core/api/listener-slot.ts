/** Contribution of a feature to the private listener: rows of the JSON API, pages, and other protocols. */
import type { Hono } from 'hono';
import type { Feature } from '../feature.ts';
import type { PageRequest, PageRoute } from '../page/layout.ts';
import type { Html } from '../page/markup.ts';
import type { Status, StatusPart, StatusSources } from '../status/status.ts';
import type { NotificationRow } from '../terms/ports.ts';
import type { Block } from '../terms/report.ts';
import type { ApiRoute } from './api-route.ts';
import type { Environment, QueryLine } from './query-line.ts';

/** Parts of the receiver that the private listener reads. Features declare theirs in this interface. */
export interface ConsoleParts {
  /** Base of download URLs. */
  catalogueUrl: string;
  /** Requests need the password of the private listener. */
  passwordNeeded: boolean;
  /** Aborted at shutdown: live streams end. */
  closing: AbortSignal;
  newRequestId: () => string;
  nowUs: () => number;
  status: () => Promise<Status>;
  statusParts: readonly StatusPart[];
  setting: StatusSources['setting'];
  /** Contributions of all features. */
  slots: readonly ListenerSlot[];
}

/** A product on its page. */
export interface ShownProduct {
  productId: string;
  /** Notifications about it, the newest first. */
  notifications: readonly NotificationRow[];
}

/** A route of the JSON API. */
export interface ServedRoute {
  route: ApiRoute;
  /**
   * Queue in which its queries wait: those of the log and those of the product index do not delay each other. `large`:
   * an answer of megabytes. `none`: the answer needs no query.
   */
  line: 'log' | 'products' | 'large' | 'none';
}

/** An entry of `/api`, the list of paths. */
export interface PathRow {
  method: string;
  path: string;
  summary: string;
}

/** A refusal before a path is routed. */
export interface Refusal {
  title: string;
  status: number;
  detail: string;
  requestId: string;
}

/** Paths with a format of their own, all below one name. */
export interface Protocol {
  root: `/${string}`;
  paths: readonly PathRow[];
  /** Methods of the paths that have others than GET and HEAD. */
  methods?: Readonly<Record<string, readonly string[]>>;
  /** Scripts of configured origins may read the answers (CORS). */
  isShared?: true;
  /** Adds the routes. `lineFor` returns the queue of a query by its number of rows. */
  add(
    app: Hono<Environment>,
    parts: ConsoleParts & { lineFor: (rows: unknown) => QueryLine },
  ): void;
  /** Answers a failure; by default problem JSON. */
  failure?(error: unknown, requestId: string): Response | Promise<Response>;
  /** Answers a refusal; by default problem JSON. */
  refusal?(refusal: Refusal, headers: Record<string, string>): Response;
}

/** Loads the contributions of all features, in their order. */
export function loadListenerSlots(features: readonly Feature[]): Promise<ListenerSlot[]> {
  return Promise.all(
    features.flatMap(({ listener }) => (listener === undefined ? [] : [listener()])),
  );
}

export interface ListenerSlot {
  routes?(parts: ConsoleParts): readonly ServedRoute[];
  pages?: readonly PageRoute[];
  protocols?: readonly Protocol[];
  /** Blocks about the endpoint, on the page of subscriptions. */
  endpointBlocks?(status: Status): readonly Block[];
  /** Panels on the page of a product. */
  productPanels?: readonly ((
    parts: ConsoleParts,
    request: PageRequest,
    product: ShownProduct,
  ) => Promise<Html>)[];
  /** Returns the positions of the content, in the form that the script of the page compares. */
  livePosition?(parts: ConsoleParts): Promise<string>;
}
