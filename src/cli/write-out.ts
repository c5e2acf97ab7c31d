/** Writes to a stream no faster than its reader takes it. */
import type { Output } from './io.ts';

/** Resolves when the stream is ready for more, so that a million rows need no memory. */
export async function writeOut(output: Output, chunk: string | Uint8Array): Promise<void> {
  if (output.write(chunk)) return;
  await new Promise<void>((resolve) => output.once('drain', resolve));
}
