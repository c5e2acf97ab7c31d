/**
 * The environment of a program that a test starts, independent of the shell that runs the tests.
 */

/**
 * Compiled code is shared between the programs of a run, because compiling takes most of a short
 * command's time.
 */
export function bareEnvironment(own: Record<string, string>): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env;
  return { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }), ...own };
}
