/** Sample subscriptions in the catalogue, registrations in the store, and desired states. */

import type { Registration } from '../../src/admin/account.ts';
import { digestCredentials } from '../../src/admin/changes.ts';
import type { CredentialPair } from '../../src/core/terms/ports.ts';
import type { DesiredSubscription } from '../../src/core/terms/subscription.ts';
import type { FakeSubscription } from './fake-catalogue.ts';

export const publicUrl = 'https://earshot.example.org:8443';
export const earlierUrl = 'https://old.example.org';
/** 2026-05-01T12:00:00Z. */
export const startUs = Date.UTC(2026, 4, 1, 12) * 1000;
export const minuteUs = 60_000_000;
export const dayUs = 86_400_000_000;

/** The credentials for the catalogue. */
export const credentials: CredentialPair = { username: 'catalogue', password: 'new and long' };
export const otherCredentials: CredentialPair = { username: 'earlier', password: 'old' };
/** Salt of the digests: random in the program, fixed here to give equal credentials equal digests. */
export const secret = 'salt';
/** Computed once: a digest takes some 10 ms. */
export const digest = digestCredentials(credentials, secret);
export const otherDigest = digestCredentials(otherCredentials, secret);

const filter = "Collection/Name eq 'SENTINEL-2'";
export const otherFilter = "Collection/Name eq 'SENTINEL-1'";

/** A managed subscription, running in the desired state for ten days. */
export function managed(
  fields: Partial<FakeSubscription> & { name?: string } = {},
): FakeSubscription {
  const { name = 'alps', ...rest } = fields;
  return {
    id: `id-${name}`,
    status: 'running',
    type: 'push',
    events: ['created'],
    filter,
    endpoint: `${publicUrl}/notifications/${name}`,
    submittedAtUs: startUs - 10 * dayUs,
    lastNotificationAtUs: startUs - minuteUs,
    credentials,
    resumedAtUs: null,
    ...rest,
  };
}

/** An unmanaged subscription that runs. */
export function unmanaged(fields: Partial<FakeSubscription> = {}): FakeSubscription {
  const endpoint = 'https://others.example.net/notifications/alps';
  return managed({ id: 'id-unmanaged', endpoint, credentials: otherCredentials, ...fields });
}

export function pull(fields: Partial<FakeSubscription> = {}): FakeSubscription {
  return managed({ id: 'id-pull', type: 'pull', endpoint: null, credentials: null, ...fields });
}

/** The registration of `managed`. */
export function registrationOf(fields: Partial<Registration> = {}): Registration {
  const { name = 'alps' } = fields;
  return {
    name,
    type: 'push',
    events: ['created'],
    filter,
    status: 'running',
    subscriptionId: `id-${name}`,
    earlierIds: [],
    unfinished: false,
    origin: 'flags',
    credentialsDigest: digest,
    activityAtUs: startUs - dayUs,
    notifiedAtUs: startUs - dayUs,
    runningSeenAtUs: startUs - dayUs / 4,
    pausedSeenAtUs: null,
    changedByPerson: false,
    ...fields,
  };
}

/** The desired state of `managed`. */
export function desiredState(fields: Partial<DesiredSubscription> = {}): DesiredSubscription {
  return {
    ...{ name: 'alps', type: 'push', events: ['created'], filter, status: 'running' },
    ...fields,
  };
}
