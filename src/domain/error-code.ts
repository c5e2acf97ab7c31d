/** What a failure of Node's, the file system's or SQLite's is called, for messages and decisions. */

/** Such as `ENOENT`; `unknown` for an error without a code. It holds no path and no secret. */
export function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
