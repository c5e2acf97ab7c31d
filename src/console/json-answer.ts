/** Writes a large JSON answer piece by piece: the thread that does it takes notifications as well. */
import { setImmediate as othersTurn } from 'node:timers/promises';

/** Records of some 5 kB each: less than a millisecond. */
const itemsAtOnce = 50;

/**
 * The same text as `Response.json` would have, but in the lists of the body a pause after each few
 * items, for whatever else has to be done.
 */
export async function jsonAnswer(body: object, headers: Record<string, string>): Promise<Response> {
  const members: string[] = [];
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined) continue;
    const text = Array.isArray(value) ? await listText(value) : JSON.stringify(value);
    members.push(`${JSON.stringify(name)}:${text}`);
  }
  const type = { 'Content-Type': 'application/json' };
  return new Response(`{${members.join(',')}}`, { headers: { ...type, ...headers } });
}

async function listText(items: readonly unknown[]): Promise<string> {
  const texts: string[] = [];
  for (const item of items) {
    texts.push(JSON.stringify(item));
    if (texts.length % itemsAtOnce === 0) await othersTurn();
  }
  return `[${texts.join(',')}]`;
}
