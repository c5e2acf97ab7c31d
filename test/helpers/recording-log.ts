/** Logs for tests: one that records its lines, and one that discards them. */
import type { Logger } from '../../src/core/terms/ports.ts';

export interface LogLine {
  level: string;
  fields: Record<string, unknown>;
  message: string;
}

const drop = () => undefined;

export const silentLog: Logger = { debug: drop, info: drop, warn: drop, error: drop };

/** Returns a log, its lines, and the lines of one level. */
export function recordingLog() {
  const lines: LogLine[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, message, fields: { ...fields } });
  const log: Logger = {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  };
  return { log, lines, at: (level: string) => lines.filter((line) => line.level === level) };
}
