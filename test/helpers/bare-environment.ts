/** What a program that a test starts has in its environment, whatever the shell of the tests has. */

/** Compiled code is shared between the programs of a run: most of a short command's time goes there. */
export function bareEnvironment(own: Record<string, string>): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env;
  return { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }), ...own };
}
