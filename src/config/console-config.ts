/** Where the private listener listens, and what keeps strangers out of it. */
import { hostInUrl } from '../http/network-address.ts';
import { isLoopbackHost } from './value-schemas.ts';
import type { Values } from './variables.ts';

export interface ConsoleConfig {
  listen: { host: string; port: number };
  /** The beginning of download URLs. */
  catalogueUrl: string;
  /** Undefined where only programs on this machine can reach it. */
  password: string | undefined;
}

export const consoleKeys = ['consoleListen', 'consolePassword', 'catalogueUrl'] as const;

/** Null for a private listener that is turned off. What is wrong is added to `problems`. */
export function readConsole(
  {
    consoleListen: listen,
    consolePassword: password,
    catalogueUrl,
  }: Values<(typeof consoleKeys)[number]>,
  problems: string[],
): ConsoleConfig | null {
  // Undefined: it could not be read, which has been reported.
  if (listen === null || listen === undefined) return null;
  const isPasswordUnread = problems.some((problem) => problem.includes('EARSHOT_CONSOLE_PASSWORD'));
  if (password === undefined && !isPasswordUnread && !isLoopbackHost(listen.host)) {
    const where = `${hostInUrl(listen.host)}:${listen.port}`;
    problems.push(
      `EARSHOT_CONSOLE_LISTEN: ${where} can be reached from other machines. Set EARSHOT_CONSOLE_PASSWORD too, or use 127.0.0.1:${listen.port}.`,
    );
  }
  return { listen, password, catalogueUrl };
}
