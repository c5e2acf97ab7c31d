/** Serves the web page: pages rendered with their data, and the files they use. */
import type { Context, Hono } from 'hono';
import type { ConsoleParts, ListenerSlot } from '../api/listener-slot.ts';
import type { Environment, QueryLine } from '../api/query-line.ts';
import { zippedAnswer } from '../http/compressed.ts';
import { exceedsLimit, isBelow, statusOf } from '../http/problem.ts';
import type { Status } from '../status/status.ts';
import { AppError, errorText, isAppError } from '../terms/app-error.ts';
import { type Assets, loadAssets } from './assets.ts';
import { document, type PageRoute } from './layout.ts';
import { command, findings, type Html, html, panel } from './markup.ts';
import { readPageState } from './page-state.ts';

/** Returns the function that recognizes paths of pages: a link in another page or program may open them. */
export function createIsPagePath(pages: readonly PageRoute[]): (path: string) => boolean {
  return (path) =>
    pages.some((one) => path === one.path || (one.path !== '/' && isBelow(path, one.path)));
}

interface PageOptions {
  /** In the order of the navigation. */
  pages: readonly PageRoute[];
  livePosition: ListenerSlot['livePosition'];
  /** First parts of paths that answer programs. */
  roots: readonly string[];
  line: QueryLine;
  newRequestId: () => string;
  /** Name of the program in commands. */
  programName: string;
  /** Logs an error that a page shows. */
  onFailure: (error: Error, requestId: string, path: string) => void;
}

/** Adds the pages and their files. The first request waits until the files are prepared, about 0.1 s. */
export function addPages(app: Hono<Environment>, parts: ConsoleParts, options: PageOptions): void {
  const { pages, line, newRequestId, onFailure, programName, livePosition } = options;
  const send: Send = (c, page, status = 200, headers = {}) => {
    const text = adapted(String(page), programName, c.var.address.prefix);
    const all = { ...pageHeaders, ...headers };
    return zippedAnswer(c.req.header('accept-encoding'), text, { status, headers: all });
  };
  app.get('/assets/*', async (c, next) => {
    const assets = await loadAssets();
    return assets.answer(c.req.path, c.req.header('accept-encoding') ?? '') ?? next();
  });
  for (const route of pages) {
    const show = async (c: Context<Environment>, id: string) => {
      const loaded = await loadAssets();
      try {
        return await line(
          (signal) =>
            respond(c, { pages, route, parts, id, assets: loaded, signal, livePosition, send }),
          c.req.raw.signal,
        );
      } catch (error) {
        const requestId = newRequestId();
        const failure = error instanceof Error ? error : new Error(String(error));
        onFailure(failure, requestId, c.req.path);
        // The status may be what failed; that is logged above.
        const status = await parts.status().catch(() => null);
        const frame = { pages, page: route, assets: loaded, status };
        return send(c, ...(await failurePage(failure, { ...frame, requestId })));
      }
    };
    app.get(route.path, (c) => show(c, ''));
    if (route.item !== undefined) app.get(`${route.path}/:id`, (c) => show(c, c.req.param('id')));
  }
  // A person who opens an unknown address; programs get a problem as JSON.
  app.get('*', async (c, next) => {
    if (!isForPeople(c.req, options.roots)) return next();
    const missing = new AppError('not_found', 'There is no page with this address.');
    const assets = await loadAssets();
    const frame = { pages, page: null, assets, status: null };
    return send(c, ...(await failurePage(missing, { ...frame, requestId: newRequestId() })));
  });
}

function isForPeople(request: Context['req'], roots: readonly string[]): boolean {
  const isFile = roots.some((root) => isBelow(request.path, root));
  return !isFile && (request.header('accept') ?? '').includes('text/html');
}

async function respond(
  c: Context<Environment>,
  request: Pick<PageOptions, 'pages' | 'livePosition'> & {
    route: PageRoute;
    parts: ConsoleParts;
    id: string;
    assets: Assets;
    signal: AbortSignal;
    send: Send;
  },
): Promise<Response> {
  const { pages, route, parts, id, assets, signal, send } = request;
  const { back } = route;
  const url = urlInside(c);
  const nowUs = parts.nowUs();
  const state = readPageState(url, { nowUs, back });
  const status = await parts.status();
  const { base } = c.var.address;
  const shown = { url, base, state, nowUs, id, status, assets, signal };
  const render = id === '' ? route.list : (route.item ?? route.list);
  // Read before the content, so that later notifications refresh it.
  const livePosition = (await request.livePosition?.(parts)) ?? '';
  const content = await render(parts, shown);
  if ('location' in content) return c.redirect(c.var.address.prefix + content.location, 303);
  const frame = { pages, page: route, url, state, status, assets, livePosition };
  return send(c, await document(content, frame));
}

/** Returns the URL of a page as its links have it: without the prefix of a proxy. */
function urlInside(c: Context<Environment>): URL {
  const { prefix, url } = c.var.address;
  return new URL(url.origin + url.pathname.slice(prefix.length) + url.search);
}

/** Adds the prefix of a proxy to links, and the name of the program to commands: they can then be pasted. */
function adapted(text: string, programName: string, prefix: string): string {
  if (programName === 'earshot' && prefix === '') return text;
  const shown = String(html`${programName}`);
  // Text and values have no quotation mark that is not escaped.
  return text
    .replaceAll(/(?<=\b(?:href|src|action)=")(?=\/)/g, prefix)
    .replace('<html ', () => `<html data-program="${shown}" `)
    .replaceAll(/(?<=<code>|data-copy=")earshot(?= [a-z-])/g, () => shown);
}

/**
 * Headers of a page: everything comes from this origin, scripts cannot write markup (Trusted Types), and no other page
 * can embed it.
 */
const pageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
  'Referrer-Policy': 'no-referrer',
  // Another site that opens a page gets no handle of its window.
  'Cross-Origin-Opener-Policy': 'same-origin',
};

type Send = (
  c: Context<Environment>,
  page: Html,
  status?: number,
  headers?: Record<string, string>,
) => Promise<Response>;

const retrySeconds = 5;

/** Renders the reason of a failure and the next step. Internal errors show only the request id. */
async function failurePage(
  error: Error,
  {
    requestId,
    ...frame
  }: {
    pages: readonly PageRoute[];
    page: PageRoute | null;
    assets: Assets;
    status: Status | null;
    requestId: string;
  },
): Promise<[page: Html, status: number, headers: Record<string, string>]> {
  const status = statusOf(error);
  const { title, reason, next } = explanationOf(error, status, requestId);
  const details = status < 500 && error instanceof AppError ? error.details : [];
  const body = panel(title, html`<p>${reason}</p>${findings(details)}${next}`);
  const page = await document(
    { title, body, refresh: status === 503, failed: true },
    { ...frame, state: null },
  );
  return [page, status, status === 503 ? { 'Retry-After': String(retrySeconds) } : {}];
}

function explanationOf(
  error: Error,
  status: number,
  requestId: string,
): { title: string; reason: string; next: Html } {
  if (isAppError(error, 'unavailable')) {
    return {
      title: 'Not available now',
      reason: exceedsLimit(error)
        ? `${error.message} The page reloads automatically.`
        : 'The query took too long, or the store or the product index cannot be read. The page reloads automatically.',
      next: html`<p>If this stays, check the receiver:</p>${command('earshot status')}`,
    };
  }
  if (status >= 500 || !(error instanceof AppError)) {
    return {
      title: 'Internal error',
      reason: `The page could not be rendered. The log of the receiver has the cause, with request id ${requestId}.`,
      next: html`<p><a href="/">Open the overview</a></p>`,
    };
  }
  return {
    title: status === 404 ? 'Not found' : 'This page cannot be shown',
    reason: errorText(error),
    next: html`<p>Change the address, or <a href="/">open the overview</a>.</p>`,
  };
}
