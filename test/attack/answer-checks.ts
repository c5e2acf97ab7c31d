/** Checks of answers of the public and the private listener, independent of the request. */
import type { Answer } from './play-case.ts';

const headersAllowed: readonly string[] = [
  ...['date', 'connection', 'keep-alive', 'content-type', 'content-length', 'transfer-encoding'],
  ...['cache-control', 'content-security-policy', 'x-content-type-options'],
  ...['strict-transport-security', 'www-authenticate', 'allow', 'retry-after', 'accept-encoding'],
];

const safetyHeaders = ['cache-control', 'content-security-policy', 'x-content-type-options'];

const parserHeaders = ['connection', 'content-length', 'transfer-encoding', 'date'];

/** Paths, stack traces, versions and names of internals, which answers must not contain. */
const revealing =
  /node_modules|node:|\/(?:src|home|tmp|usr|var|etc)\/|\.[cm]?[jt]s\b|\bat .+:\d+:\d+|\b(?:Type|Range|Syntax|Zod)Error|sqlite|hono|\bv?\d+\.\d+\.\d+|bench:/i;

/** Returns the problem of an answer, or null. */
export function checkPublicAnswer({ status, headers, body }: Answer): string | null {
  const foreign = headers.find(([name]) => !headersAllowed.includes(name));
  if (foreign !== undefined) return `a header ${foreign.join(': ')}`;
  const leak = headers.map((header) => header.join(': ')).find((line) => revealing.test(line));
  if (leak !== undefined) return `a header that reveals internals: ${leak}`;
  const names = headers.map(([name]) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) return `the header ${twice} twice`;
  if (isOfParser(status, names, body)) return null;
  const missing = safetyHeaders.find((name) => !names.includes(name));
  if (missing !== undefined) return `no header ${missing}`;
  if (status === 401 && !names.includes('www-authenticate')) return '401 without a challenge';
  if (status === 405 && !names.includes('allow')) return '405 without Allow';
  if ([429, 503].includes(status) && !names.includes('retry-after')) return 'no Retry-After';
  return checkBody(status, body);
}

/** Returns true for an answer of the HTTP parser to an invalid request: few headers and no body. */
function isOfParser(status: number, names: readonly string[], body: string): boolean {
  return body === '' && status >= 400 && names.every((name) => parserHeaders.includes(name));
}

function checkBody(status: number, body: string): string | null {
  if (body === '') return null;
  if (revealing.test(body)) return `a body that reveals internals: ${body.slice(0, 300)}`;
  if (status === 200) return /^\{"status":"(stored|duplicate)"\}$/.test(body) ? null : body;
  return isProblem(body, status) ? null : `no problem JSON: ${body.slice(0, 300)}`;
}

/** Returns true for a problem JSON (RFC 9457) with documented fields only. */
function isProblem(body: string, status: number): boolean {
  const known = ['type', 'title', 'status', 'detail', 'errors', 'requestId'];
  try {
    const problem: unknown = JSON.parse(body);
    if (typeof problem !== 'object' || problem === null) return false;
    const isKnown = Object.keys(problem).every((name) => known.includes(name));
    return isKnown && 'status' in problem && problem.status === status && 'requestId' in problem;
  } catch {
    return false;
  }
}

const mustNotHave = /^(?:server|x-powered-by|access-control-.*|location)$/;
const deviceCookie =
  /^earshot-device=[\w.-]+; Max-Age=\d+; Path=\/; HttpOnly;(?: Secure;)? SameSite=Strict$/;

/** Returns the problem of an answer, or null. Product data may contain anything, so only refusals must not reveal internals. */
export function checkPrivateAnswer({ status, headers, body }: Answer): string | null {
  const names = headers.map(([name]) => name);
  const foreign = names.find((name) => mustNotHave.test(name));
  if (foreign !== undefined) return `a header ${foreign}`;
  const cookie = headers.find(([name]) => name === 'set-cookie')?.[1];
  if (cookie !== undefined && !deviceCookie.test(cookie)) return `a cookie: ${cookie}`;
  if (isOfParser(status, names, body)) return null;
  const missing = safetyHeaders.find((name) => !names.includes(name));
  if (missing !== undefined) return `no header ${missing}`;
  if (status >= 500 && ![501, 503].includes(status))
    return `status ${status}: ${body.slice(0, 300)}`;
  // Pages name their scripts and style sheets.
  const text = body.replaceAll(/\/assets\/[\da-f]{16}\/[\w-]+\.(?:js|css|svg)/g, '');
  if (status >= 400 && revealing.test(text)) return `reveals internals: ${body.slice(0, 300)}`;
  const type = headers.find(([name]) => name === 'content-type')?.[1] ?? '';
  return /json/.test(type) && body !== '' && !isJson(body) ? 'no JSON' : null;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
