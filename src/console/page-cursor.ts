/** Where a page ended, as one word in a link. */
import type { ProductKey } from '../domain/products.ts';

/** Letters that stand for themselves in a URL; good for the order that it was made with. */
export function cursorText({ value, position }: ProductKey): string {
  return `${value ?? 'null'}_${position}`;
}

/** Null for a text that no page of ours ever gave. */
export function readCursor(text: string): ProductKey | null {
  const [, value, position] = /^(null|-?\d{1,16})_(\d{1,16})$/.exec(text) ?? [];
  if (value === undefined || position === undefined) return null;
  const key = { value: value === 'null' ? null : Number(value), position: Number(position) };
  const isSafe = Number.isSafeInteger(key.position) && Number.isSafeInteger(key.value ?? 0);
  return isSafe ? key : null;
}
