/** Colour, on a terminal only. */
import { styleText } from 'node:util';
import type { Io, Output } from './io.ts';

type Style = Parameters<typeof styleText>[0];

/** A painter for one stream; it leaves texts alone off a terminal and under NO_COLOR. */
export function painter(
  io: Pick<Io, 'env'>,
  output: Output,
): (style: Style, text: string) => string {
  const coloured = output.isTTY === true && !io.env.NO_COLOR;
  return (style, text) => (coloured ? styleText(style, text, { validateStream: false }) : text);
}
