/** What an answer of the private listener may look like. */
import type { Answer } from './answers.ts';
import { revealing } from './public-verdict.ts';

const parserHeaders = ['connection', 'content-length', 'transfer-encoding', 'date'];
const mustHave = ['cache-control', 'content-security-policy', 'x-content-type-options'];
const mustNotHave = /^(?:server|x-powered-by|access-control-.*|set-cookie|location)$/;

/** What is wrong with an answer, or null. What was received is shown here, so only refusals must not reveal. */
export function judgePrivateAnswer({ status, headers, body }: Answer): string | null {
  const names = headers.map(([name]) => name);
  const foreign = names.find((name) => mustNotHave.test(name));
  if (foreign !== undefined) return `a header ${foreign}`;
  if (body === '' && status >= 400 && names.every((name) => parserHeaders.includes(name))) {
    return null;
  }
  const missing = mustHave.find((name) => !names.includes(name));
  if (missing !== undefined) return `no header ${missing}`;
  if (status >= 500 && status !== 503) return `status ${status}: ${body.slice(0, 300)}`;
  if (status >= 400 && revealing.test(body)) return `tells too much: ${body.slice(0, 300)}`;
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
