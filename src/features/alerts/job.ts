/** The watchdog of a running receiver. */

import { type Io, pause } from '../../core/cli/io.ts';
import { asCalled } from '../../core/cli/output.ts';
import type { Job } from '../../core/host/job.ts';
import { createRunProgram } from '../../core/host/run-program.ts';
import { loadStatusParts } from '../../core/status/status.ts';
import type { JobContext } from '../../receiver/slots.ts';
import type { AlertMessage } from './message.ts';
import {
  type AlertSender,
  createCommandSender,
  createUrlSender,
  type DeliveryDeps,
} from './notify.ts';
import type { ChannelConfig } from './settings.ts';
import { startWatchdog } from './watchdog.ts';

/** Checks what the parts of the status watch. Alerts advise according to the jobs that run. */
export async function serveWatchdog({
  receiver: { store, statusSources: sources },
  settings,
  jobs,
  rejected,
  log,
  io,
}: JobContext): Promise<Job> {
  const { nowUs, random } = io;
  const running = { store, job: (name: string) => jobs.get(name) };
  return startWatchdog({
    parts: await loadStatusParts(io.features),
    sources: { ...sources, running, rejected: async () => rejected() },
    alerts: store.alerts,
    senders: alertSenders(settings, io),
    ...{ nowUs, random, pause, log },
  });
}

/** Returns the senders of the configured notification channels. */
export function alertSenders(
  { alertUrl, alertCommand }: Pick<ChannelConfig, 'alertUrl' | 'alertCommand'>,
  { fetch, random, ...host }: Pick<Io, 'fetch' | 'random' | 'env' | 'onExit'>,
): DeliveryDeps['senders'] {
  const named = (send: AlertSender): AlertSender => {
    return (message, signal) => send(withCommands(message, host), signal);
  };
  return {
    ...(alertUrl !== null && { url: named(createUrlSender(alertUrl, { fetch, random })) }),
    ...(alertCommand !== null && {
      command: named(createCommandSender(alertCommand, createRunProgram(host))),
    }),
  };
}

/** Names commands as the receiver was called: its machine runs them. */
function withCommands(message: AlertMessage, io: Pick<Io, 'env'>): AlertMessage {
  const { text, problem, nextStep } = message;
  const named = (one: string) => asCalled(one, io);
  return { ...message, text: named(text), problem: named(problem), nextStep: named(nextStep) };
}
