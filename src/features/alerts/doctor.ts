/** The doctor's check of the channels of alerts. */

import { loadConfig } from '../../core/config/config.ts';
import { type DoctorSlot, needsOf } from '../../core/doctor/steps.ts';
import { createFindProgram, type FindProgram } from '../../core/host/run-program.ts';
import { reachHost } from '../../core/http/bounded-fetch.ts';
import { type Finding, finding } from '../../core/terms/evaluation.ts';
import { type ChannelConfig, channelSections } from './settings.ts';

export const stepsOf: DoctorSlot['stepsOf'] = async (_settings, io, { attempt }) => {
  const channels = await attempt(() => loadConfig(io, channelSections));
  const deps = { findProgram: createFindProgram(io), signal: io.signal };
  const run = async () => (channels === undefined ? [] : checkAlerts(channels, deps));
  return [{ name: alerts, needs: needsOf(channels), run }];
};

/** Returns one finding per channel, or one if there is none. A URL is a secret: only its host is named. Never rejects. */
export async function checkAlerts(
  { alertUrl, alertCommand }: Pick<ChannelConfig, 'alertUrl' | 'alertCommand'>,
  { findProgram, signal }: { findProgram: FindProgram; signal: AbortSignal },
): Promise<Finding[]> {
  const faults = new Map<string, string | null>();
  if (alertUrl !== null)
    faults.set(new URL(alertUrl).host, await reachHost(alertUrl, { ca: null, signal }));
  const program = alertCommand?.[0];
  if (program !== undefined) faults.set(program, findProgram(program));
  if (faults.size === 0) {
    const text = 'No channel is configured: alerts only appear in the log and in `earshot alerts`.';
    return [finding(alerts, 'warning', text, setChannel)];
  }
  const usable = '`earshot alerts --test` sends a test message.';
  return [...faults].map(([target, fault]) =>
    fault === null
      ? finding(alerts, 'ok', `${target} can be used; ${usable}`)
      : finding(alerts, 'critical', `${target} cannot be used: ${fault}.`, setChannel),
  );
}

const alerts = 'alerts';

const setChannel =
  'Set EARSHOT_ALERT_URL (for example the incoming webhook of a chat) or EARSHOT_ALERT_COMMAND.';
