/** Prints a line for each new product; after an interruption, it continues where it stopped. */
import { setTimeout as delay } from 'node:timers/promises';

const [origin = 'http://127.0.0.1:8080', after] = process.argv.slice(2);
const headers: Record<string, string> = after === undefined ? {} : { 'Last-Event-ID': after };
for (; ; await delay(1_000)) {
  try {
    const answer = await fetch(`${origin}/api/feed?event=created`, { headers });
    if (!answer.ok) throw new Error(await answer.text());
    let text = '';
    for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = `${text}${part}`.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const [, id = '', data] = /^id: (\d+)(?:\ndata: (.*))?$/.exec(block) ?? [];
        if (data !== undefined) console.log(id, JSON.parse(data).productName); // your work
        headers['Last-Event-ID'] = id; // done: it is not sent again
      }
    }
  } catch (error) {
    console.error(error);
  }
}
