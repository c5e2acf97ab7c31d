/** Makes a configuration what it is meant to be: read once, changed never. */

/** Freezes a value and all that is in it. */
export function frozen<Value extends object>(value: Value): Readonly<Value> {
  for (const inner of Object.values(value)) {
    if (typeof inner === 'object' && inner !== null) frozen(inner);
  }
  return Object.freeze(value);
}
