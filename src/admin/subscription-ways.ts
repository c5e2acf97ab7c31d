/** Ways in which notifications reach this receiver. */

import type { Io } from '../core/cli/io.ts';
import { checkConfig } from '../core/config/config.ts';
import type { Environment } from '../core/config/load.ts';
import { type ConfigPlace, loadSubscriptionsFile } from '../core/config/subscriptions-file.ts';
import { AppError } from '../core/terms/app-error.ts';
import type { SubscriptionType } from '../core/terms/subscription.ts';
import { registeredSubscriptions } from './operations.ts';

/**
 * Returns false if the receiver needs no public listener: EARSHOT_PUBLIC_URL is not set, and no subscription is push, in
 * `earshot.config.ts` and among the registered ones. Without any subscription, or with those of the file alone, an account
 * must be configured; without any, also no variable of the listener may be set.
 */
export async function needsEndpoint(io: Environment & Pick<Io, 'workingDir'>): Promise<boolean> {
  const { publicUrl, dataDir, account } = checkConfig(io, sections).config;
  if (publicUrl !== undefined) return true;
  const registered =
    dataDir === undefined ? [] : registeredSubscriptions(dataDir).map(({ type }) => type);
  // The file is read only if necessary: a slow or broken one must not delay a receiver of pushes.
  const isPush = registered.includes('push') || (registered.length === 0 && account === null);
  if (isPush) return true;
  const types = [...(await typesInFile(io)), ...registered];
  const isListenerSet = Object.keys(io.env).some((name) => /^EARSHOT_(LISTEN$|TLS)/.test(name));
  return types.length === 0 ? isListenerSet : types.includes('push');
}

const sections = ['publicUrl', 'dataDir', 'account'] as const;

/** Returns none for an invalid file: its problems are reported where it is used. */
async function typesInFile(place: ConfigPlace): Promise<SubscriptionType[]> {
  try {
    return ((await loadSubscriptionsFile(place)) ?? []).map(({ type }) => type);
  } catch (error) {
    if (error instanceof AppError) return [];
    throw error;
  }
}
