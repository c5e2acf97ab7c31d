/** Writes to a stream no faster than its reader takes it. */
import { printable } from '../domain/printable.ts';
import type { Output } from './io.ts';

/** Resolves when the stream is ready for more, so that a million rows need no memory. */
export async function writeOut(output: Output, chunk: string | Uint8Array): Promise<void> {
  if (output.write(chunk)) return;
  await new Promise<void>((resolve) => output.once('drain', resolve));
}

/**
 * The same for words of others in no colours of ours: a file gets them as they are, a terminal must not be steered by
 * them. Line feeds stay.
 */
export function writeForeign(output: Output, chunk: string | Uint8Array): Promise<void> {
  if (!output.isTTY) return writeOut(output, chunk);
  const text = typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk);
  return writeOut(output, text.split('\n').map(printable).join('\n'));
}
