/** Requests to the STAC API, and parts of its answers. */
import { expect } from 'vitest';
import type { Answer, Console } from '../../core/api/console-context.ts';

export const query = (path: string, parameters: Record<string, string>) =>
  `/stac${path}?${new URLSearchParams(parameters)}`;

const nextLinkOf = (json: Answer['json']) =>
  json.links.find(({ rel }: { rel: string }) => rel === 'next');

export const nextOf = (json: Answer['json']): string | null => nextLinkOf(json)?.href ?? null;

/** Addresses of links by their relation. */
export const linksIn = ({ links }: Answer['json']): Record<string, string> =>
  Object.fromEntries(links.map((one: { rel: string; href: string }) => [one.rel, one.href]));

export const idsOf = (answers: readonly Answer[]): string[] =>
  answers.flatMap(({ json }) => json.features.map(({ id }: { id: string }) => id));

export function post({ get }: Pick<Console, 'get'>, body: unknown, target = '/stac/search') {
  const headers = { 'Content-Type': 'application/json' };
  return get(target, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Follows the links of a search by POST, which contain the body of the next request. */
export async function followPosts(context: Pick<Console, 'get'>, body: object): Promise<Answer[]> {
  const answers = [await post(context, body)];
  for (;;) {
    const link = nextLinkOf(answers.at(-1)?.json);
    if (link === undefined || answers.length > 100) return answers;
    expect(link.method).toBe('POST');
    answers.push(await post(context, link.body, link.href));
  }
}
