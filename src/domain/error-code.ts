/** What a failure of Node's, the file system's or SQLite's is called, for messages and decisions. */

/** Such as `ENOENT`; `unknown` for an error without a code. It holds no path and no secret. */
export function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

/** Why a file cannot be read, in words that follow a colon. */
export function readFaultOf(error: unknown): string {
  const code = errorCodeOf(error);
  return readFaults[code] ?? `the system says ${code}`;
}

const readFaults: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
};
