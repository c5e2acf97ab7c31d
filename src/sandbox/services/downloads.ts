/** Downloads of products over HTTP and from the object store: their limit, faults, speed and counts. */
import { setTimeout as delay } from 'node:timers/promises';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context, Next } from 'hono';
import { unknownProduct } from '../../filter/odata.ts';
import type { Content, Contents } from '../products/content.ts';
import type { Ledger } from '../publishing/ledger.ts';
import { downloadFaults, type LiveServiceSettings, takeNext } from '../settings.ts';
import type { IdentityProvider } from './identity.ts';
import { bearerOf, type ServiceAnswer, writeAnswer } from './service-answer.ts';

/** Answers to refused downloads, in the form of the service. */
export type Refusals = Readonly<Record<'rateLimited' | 'serverError' | 'offline', ServiceAnswer>>;

/** Number of pieces per second at a limited speed. */
const piecesPerSecond = 20;
const pieceBytesMax = 65_536;

export function createDownloads(liveSettings: LiveServiceSettings) {
  const counts = { requests: 0, inFlight: 0, inFlightMax: 0, bytes: 0 };
  return {
    /** Returns counts of downloads; `bytes` are those that were sent. */
    totals: () => ({ ...counts }),
    /** Sends the content, or the requested range of it. */
    send: async (
      { size, read }: Content,
      given: Readonly<Record<string, string>>,
      refusals: Refusals,
      { incoming, outgoing }: HttpBindings,
    ): Promise<Response> => {
      const settings = liveSettings.current();
      const { downloadBytesPerSecond: speed } = settings;
      counts.requests += 1;
      const isFull = counts.inFlight >= settings.downloadsMax;
      const fault = isFull ? 'rateLimited' : takeNext(downloadFaults, settings.nextDownloads);
      const refusal = new Map<unknown, ServiceAnswer>(Object.entries(refusals)).get(fault);
      if (refusal !== undefined) return writeAnswer(refusal, outgoing);
      const range = settings.downloadRanges ? incoming.headers.range : undefined;
      const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
      const start = Number(from ?? 0);
      const end = Math.min(size, to ? Number(to) + 1 : size);
      const headers: Record<string, string> = { ...given, 'Content-Length': `${end - start}` };
      if (from !== undefined) headers['Content-Range'] = `bytes ${start}-${end - 1}/${size}`;
      if (from !== undefined && start >= end) {
        const unsatisfiable = { 'Content-Range': `bytes */${size}` };
        return writeAnswer({ status: 416, body: null, headers: unsatisfiable }, outgoing);
      }
      const status = from === undefined ? 200 : 206;
      if (incoming.method === 'HEAD') return writeAnswer({ status, body: null, headers }, outgoing);
      outgoing.writeHead(status, headers);
      counts.inFlight += 1;
      counts.inFlightMax = Math.max(counts.inFlightMax, counts.inFlight);
      outgoing.once('close', () => {
        counts.inFlight -= 1;
      });
      const stop = fault === 'connectionCut' ? start + Math.ceil((end - start) / 2) : end;
      const piece = speed === null ? pieceBytesMax : Math.ceil(speed / piecesPerSecond);
      for (let at = start; at < stop && !outgoing.destroyed; at += piece) {
        const bytes = Buffer.from(read(at, Math.min(stop, at + piece)));
        if (fault === 'wrongByte' && at === start) bytes[0] = (bytes[0] ?? 0) ^ 1;
        // Also called when the client disconnects.
        await new Promise<unknown>((resolve) => outgoing.write(bytes, resolve));
        counts.bytes += bytes.length;
        if (speed !== null) await delay((bytes.length / speed) * 1_000);
      }
      if (fault === 'connectionCut') outgoing.destroy();
      else outgoing.end();
      return RESPONSE_ALREADY_SENT;
    },
  };
}

export interface DownloadServices {
  /** Undefined without downloads. */
  readonly contents: Contents | undefined;
  readonly downloads: ReturnType<typeof createDownloads>;
  readonly ledger: Pick<Ledger, 'find'>;
  readonly provider: IdentityProvider;
  readonly liveSettings: LiveServiceSettings;
}

/** Creates the handler of `Products(<id>)/$value`; other requests go to the next one. */
export function productDownloads(services: DownloadServices) {
  const { contents, downloads, ledger, provider, liveSettings } = services;
  return async ({ req, env }: Context<{ Bindings: HttpBindings }>, next: Next) => {
    const id = /\/Products\(([\w-]+)\)\/(?:\$|%24)value$/.exec(req.path)?.[1];
    if (contents === undefined || id === undefined || req.method !== 'GET') return next();
    const { unavailable, offlineStatus, downloadsMax } = liveSettings.current();
    if (unavailable) return writeAnswer(failure(503, '503', 'Unavailable'), env.outgoing);
    const token = bearerOf(req);
    if (token === undefined || !provider.accepts(token)) {
      const [code, message] = token ? ['109', 'Token is expired'] : ['604', 'Token not found'];
      return writeAnswer(failure(401, code, message), env.outgoing);
    }
    if (ledger.find('Products', id) === undefined) {
      return writeAnswer(failure(404, '404', unknownProduct(id)), env.outgoing);
    }
    const refusals = {
      rateLimited: failure(429, '100', `Max session number ${downloadsMax} exceeded.`),
      serverError: failure(500, '500', 'Internal server error'),
      offline: failure(offlineStatus, '404', 'Product is offline'),
    };
    return downloads.send(contents.of(id), { 'Content-Type': 'application/zip' }, refusals, env);
  };
}

/** Error of the download service. The real service has the codes 100, 109 and 604; the others are not known. */
function failure(status: number, code = '', message = ''): ServiceAnswer {
  return { status, body: { code: `DAT-ZIP-${code}`, message } };
}
