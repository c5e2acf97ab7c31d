/** A reader of `/api/feed`. */
import { expect, onTestFinished } from 'vitest';

/** A block of the stream: a heartbeat has no data. */
export interface Block {
  id: number;
  data: string | null;
}

/** Opens a stream, which ends with the test. */
export async function openFeed(url: string, headers: Record<string, string> = {}) {
  const leaving = new AbortController();
  const close = () => leaving.abort();
  onTestFinished(close);
  const answer = await fetch(url, { signal: leaving.signal, headers });
  const blocks: Block[] = [];
  const collect = async () => {
    let text = '';
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const parts = `${text}${chunk}`.split('\n\n');
      text = parts.pop() ?? '';
      blocks.push(...parts.map(parsed));
    }
  };
  const ended = collect().catch(() => undefined);
  const events = () => blocks.filter(({ data }) => data !== null);
  const positions = () => events().map(({ id }) => id);
  return {
    ...{ status: answer.status, headers: answer.headers, blocks, ended, close, positions },
    messages: () => events().map(({ data }) => JSON.parse(data ?? '')),
    /** Resolves when the stream has sent exactly these events. */
    expectPositions: (expected: readonly number[]) =>
      expect.poll(positions, { timeout: 10_000, interval: 5 }).toEqual(expected),
  };
}

export type Feed = Awaited<ReturnType<typeof openFeed>>;

function parsed(block: string): Block {
  const [, id, data = null] = /^id: (\d+)(?:\ndata: (.*))?$/.exec(block) ?? [];
  if (id === undefined) expect.fail(`not a block: ${block}`);
  return { id: Number(id), data };
}
