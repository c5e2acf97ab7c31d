/** The doctor's checks of what alerts are told through. Nothing is told. */
import type { Finding } from '../domain/finding.ts';
import { reachHost } from '../http/bounded-fetch.ts';

const check = 'alerts';

export interface AlertCheckOptions {
  /** A secret: findings name its host alone. Null where there is none. */
  alertUrl: string | null;
  /** A program and its arguments; null where there is none. */
  alertCommand: readonly string[] | null;
  /** Null when the program can be started, else why not. */
  findProgram: (program: string) => string | null;
  signal: AbortSignal;
}

/** One finding for each channel, or that there is none; never rejects. */
export async function checkAlerts(options: AlertCheckOptions): Promise<Finding[]> {
  const { alertUrl, alertCommand } = options;
  const findings = [
    ...(alertUrl === null ? [] : [await checkUrl(alertUrl, options.signal)]),
    ...(alertCommand === null ? [] : [checkCommand(alertCommand, options)]),
  ];
  return findings.length > 0 ? findings : [nobody];
}

const nobody: Finding = {
  check,
  state: 'warn',
  message: 'Nobody is told of alerts: they stand in the log and in `earshot alerts` alone.',
  advice:
    'Set EARSHOT_ALERT_URL, such as the incoming webhook of a chat, or EARSHOT_ALERT_COMMAND.',
};

async function checkUrl(url: string, signal: AbortSignal): Promise<Finding> {
  const { host } = new URL(url);
  const fault = await reachHost(url, { ca: null, signal });
  if (fault === null) {
    const message = `${host} can be reached; \`earshot alerts --test\` sends it one.`;
    return { check, state: 'pass', message };
  }
  return {
    check,
    state: 'fail',
    message: `${host} cannot be reached: ${fault}.`,
    advice: 'Correct EARSHOT_ALERT_URL, or let this machine through to it.',
  };
}

function checkCommand(
  [program = '']: readonly string[],
  { findProgram }: Pick<AlertCheckOptions, 'findProgram'>,
): Finding {
  const fault = findProgram(program);
  if (fault === null) {
    const message = `${program} is there, and may be run; \`earshot alerts --test\` runs it.`;
    return { check, state: 'pass', message };
  }
  return {
    check,
    state: 'fail',
    message: `${program} cannot be run: ${fault}.`,
    advice:
      'Correct EARSHOT_ALERT_COMMAND, best with the whole path, or make the program executable.',
  };
}
