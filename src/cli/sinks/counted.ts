/** Numbers as people read them: `1,288`, and with what they are a number of. */

export const whole = (count: number) => count.toLocaleString('en-US');

/** `1 dead letter`, `1,288 dead letters`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}
