/** Addresses of modules that are loaded by their file. */

/** Returns the file of a module next to another one, in a checkout and in a build. */
export function moduleFile(name: string, nextTo: string): URL {
  return new URL(`${name}${nextTo.endsWith('.ts') ? '.ts' : '.js'}`, nextTo);
}
