/** Environments for tests of the configuration: variables and files without a process. */

import { inspect } from 'node:util';
import { loadServed } from '../../../src/core/config/config.ts';
import type { Environment } from '../../../src/core/config/load.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { settings } from '../../helpers/settings.ts';

/** The minimum that `start` needs. */
export const minimalEnv = {
  EARSHOT_ENDPOINT_USERNAME: 'catalogue',
  EARSHOT_ENDPOINT_PASSWORD: 'a long password',
  EARSHOT_TLS_CERT: 'cert.pem',
  EARSHOT_TLS_KEY: 'key.pem',
};

export type Env = Record<string, string | undefined>;

/** An environment whose files are entries of a record. */
export function environment(env: Env, files: Record<string, string> = {}): Environment {
  const readFile = (path: string) => {
    const text = files[path];
    if (text === undefined) throw Object.assign(new Error(`no file ${path}`), { code: 'ENOENT' });
    return text;
  };
  return { settings, env, readFile };
}

/** The configuration for `start` with some variables changed; undefined removes one. */
export function configWith(env: Env, files = {}) {
  return loadServed(environment({ ...minimalEnv, ...env }, files), true);
}

/** Returns the problems of an environment as an error. Fails when there are none. */
export function refusalOf(call: () => unknown): AppError {
  try {
    call();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('Nothing was refused.');
}

/** The problems that `start` finds in an environment. */
export function problemsWith(env: Env, files = {}) {
  return refusalOf(() => configWith(env, files)).details;
}

/** Everything that an error could show: message, details, stack, causes, hidden fields. */
export function wholeTextOf(error: Error): string {
  const json = JSON.stringify({ ...error, message: error.message });
  return [inspect(error, { depth: null, showHidden: true }), json, error.stack].join('\n');
}
