/** Checks of an account after a plan was applied, with or without interruptions. */
import { expect } from 'vitest';
import type { Gap } from '../../src/admin/account.ts';
import type { ApplyOptions } from '../../src/admin/differences.ts';
import {
  type DesiredSubscription,
  endpointOf,
  sortedEvents,
} from '../../src/core/terms/subscription.ts';
import type { FakeSubscription } from './fake-catalogue.ts';
import { credentials, earlierUrl, publicUrl } from './samples.ts';
import type { AccountSetUp, Moment } from './set-up.ts';

/** Expects the desired state and unchanged `others` in the account, and nothing else. */
export async function expectSettled(
  { catalogue, administration, plan }: AccountSetUp,
  options: ApplyOptions,
  others: readonly FakeSubscription[] = [],
): Promise<void> {
  const { desired } = options;
  const account = catalogue.subscriptions().filter(({ status }) => status !== 'cancelled');
  const otherIds = new Set(others.map(({ id }) => id));
  expect(account.filter(({ id }) => otherIds.has(id))).toEqual(others);
  const ours = account.filter(({ id }) => !otherIds.has(id));
  expect(ours.map(fieldsOf).toSorted(byEndpoint)).toEqual(
    desired.map(desiredFields).toSorted(byEndpoint),
  );
  expect((await plan(options)).differences).toEqual([]);
  expect(catalogue.refusals).toEqual([]);
  const registrations = await administration.registrations();
  for (const one of desired) {
    const registration = registrations.find(({ name }) => name === one.name);
    expect(registration).toMatchObject({ ...one, unfinished: false });
    const there = ours.find(({ id }) => id === registration?.subscriptionId);
    expect(there?.endpoint).toBe(endpointOf(publicUrl, one.name));
  }
}

const byEndpoint = (a: { endpoint: string | null }, b: { endpoint: string | null }) =>
  `${a.endpoint}`.localeCompare(`${b.endpoint}`);

function fieldsOf({ status, events, filter, endpoint, credentials: given }: FakeSubscription) {
  return {
    status,
    events: sortedEvents(events),
    filter: filter.trim(),
    endpoint: endpoint === null ? null : endpoint.replace(/\/$/, ''),
    credentials: given,
  };
}

function desiredFields({ name, events, filter, status }: DesiredSubscription) {
  const endpoint = `${publicUrl}/notifications/${name}`;
  return { status, events: sortedEvents(events), filter: filter.trim(), endpoint, credentials };
}

/**
 * Expects that every event since `fromUs` was either sent by a subscription that ran with one of
 * `versions`, or is inside a recorded gap.
 */
export function expectNoEventLost(
  moments: readonly Moment[],
  gaps: readonly Gap[],
  about: {
    name: string;
    /** Ids that are managed at any endpoint; other subscriptions are recognized by their endpoint. */
    ids?: readonly string[];
    versions: readonly { events: readonly string[]; filter: string }[];
    fromUs: number;
  },
): void {
  const { name, ids = [], versions, fromUs } = about;
  const endpoints = [publicUrl, earlierUrl].map((url) => `${url}/notifications/${name}`);
  const isOurs = ({ id, endpoint }: FakeSubscription) =>
    ids.includes(id) || endpoints.some((one) => one === endpoint);
  const serves = (one: FakeSubscription) =>
    one.status === 'running' &&
    isOurs(one) &&
    versions.some(({ events, filter }) => one.filter === filter && `${one.events}` === `${events}`);
  const isRecorded = (atUs: number) =>
    gaps.some(
      (gap) =>
        gap.subscription === name && gap.fromUs <= atUs && (gap.toUs === null || atUs <= gap.toUs),
    );
  const lost = moments
    .filter(({ atUs }) => atUs >= fromUs)
    .filter(({ atUs, subscriptions }) => !subscriptions.some(serves) && !isRecorded(atUs));
  expect(lost).toEqual([]);
}
