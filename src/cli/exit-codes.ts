/** The one table from what went wrong to the program's exit code. */
import type { ErrorCode } from '../domain/app-error.ts';

export const exitCodes = {
  done: 0,
  failed: 1,
  /** Wrong usage or configuration: the same call can never work. */
  usage: 2,
  /** `--check` has found that something is not as wanted. */
  differences: 3,
} as const;

export const exitCodeOf: Record<ErrorCode, number> = {
  usage: exitCodes.usage,
  configuration: exitCodes.usage,
  invalid: exitCodes.failed,
  unauthorized: exitCodes.failed,
  not_found: exitCodes.failed,
  wrong_method: exitCodes.failed,
  conflict: exitCodes.failed,
  too_large: exitCodes.failed,
  unsupported: exitCodes.failed,
  too_many: exitCodes.failed,
  unavailable: exitCodes.failed,
  differences: exitCodes.differences,
  cancelled: exitCodes.failed,
  internal: exitCodes.failed,
};
