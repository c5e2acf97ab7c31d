/** The doctor's check of our subscriptions: each one's state, and what will become of it. */
import type { DeliveryMark, Registration } from '../../domain/administration.ts';
import type { Finding } from '../../domain/finding.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import { dayUs } from '../maintenance/lifetimes.ts';
import { lastDeliveryOf } from '../maintenance/maintain.ts';
import { type Note, type Review, review } from '../maintenance/review.ts';
import { isDigestOf } from '../plan/credentials-digest.ts';
import { sortAccount } from '../plan/ownership.ts';
import type { CatalogueSubscription } from '../service/catalogue-subscription.ts';
import type { EndpointCredentials } from '../service/subscription-client.ts';

export interface SubscriptionsInput {
  listed: readonly CatalogueSubscription[];
  registrations: readonly Registration[];
  deliveryMarks: readonly DeliveryMark[];
  /** What `earshot.config.ts` names; null without the file. */
  inFile: readonly DesiredSubscription[] | null;
  publicUrl: string;
  /** What the receiver accepts. */
  pairs: readonly EndpointCredentials[];
  nowUs: number;
}

/** Notes that mean that notifications are being missed now; the others are warnings. */
const missing = /^(gone|drift-.*endpoint.*)$/;

/** For each subscription what is right about it, or what is not. */
export function checkSubscriptions(input: SubscriptionsInput): Finding[] {
  const { listed, registrations, inFile, publicUrl } = input;
  const { ours } = sortAccount(listed, { publicUrl, registrations });
  const known = new Map(registrations.map((one) => [one.name, one]));
  const wanted = (inFile ?? []).map(({ name }) => name);
  const names = [...new Set([...known.keys(), ...wanted, ...ours.keys()])].toSorted();
  if (names.length === 0) {
    const message = 'None is registered yet.';
    const advice = 'When all of the above is well: `earshot register`.';
    return [{ check: 'subscriptions', state: 'skipped', message, advice }];
  }
  return names.flatMap((name) => {
    const registration = known.get(name);
    const candidates = ours.get(name) ?? [];
    return registration === undefined
      ? [unregistered(name, candidates)]
      : registered(registration, candidates, input);
  });
}

function unregistered(name: string, candidates: readonly CatalogueSubscription[]): Finding {
  const check = checkName(name);
  const there = candidates.length > 0;
  const message = there
    ? 'It is at the catalogue, and this installation has not given it its credentials.'
    : 'It is in earshot.config.ts, and not registered yet.';
  const advice = `\`earshot register\` ${there ? 'adopts' : 'registers'} it.`;
  return { check, state: there ? 'fail' : 'warn', message, advice };
}

function registered(
  registration: Registration,
  candidates: readonly CatalogueSubscription[],
  input: SubscriptionsInput,
): Finding[] {
  const { name } = registration;
  const { inFile, deliveryMarks } = input;
  const lastDeliveryAtUs = lastDeliveryOf(name, deliveryMarks, input.nowUs);
  const reviewed = review({
    ...input,
    registration,
    candidates,
    lastDeliveryAtUs,
    inFile: inFile === null ? undefined : (inFile.find((one) => one.name === name) ?? null),
  });
  const { current } = reviewed;
  const findings = [
    ...actionFindings(name, reviewed),
    ...reviewed.notes.map((note) => noteFinding(name, note)),
    ...credentialFindings(registration, input.pairs),
  ];
  if (current === null || current.status !== registration.status) return findings;
  const facts = factsOf(current, reviewed, lastDeliveryAtUs, input.nowUs);
  return [{ check: checkName(name), state: 'pass', message: facts }, ...findings];
}

/** Such as "Running, as wanted; last notification 2026-05-02; …". */
function factsOf(
  current: CatalogueSubscription,
  { lifetime: { pausesAtUs, cancelsAtUs } }: Review,
  lastDeliveryAtUs: number | null,
  nowUs: number,
): string {
  const lastUs = Math.max(current.lastNotificationAtUs ?? 0, lastDeliveryAtUs ?? 0);
  const last = lastUs === 0 ? 'no notification yet' : `last notification ${shortTime(lastUs)} UTC`;
  const days = (us: number) => `${Math.max(0, Math.ceil((us - nowUs) / dayUs))} days`;
  const pause = current.status === 'running' ? `pauses it in ${days(pausesAtUs)} and ` : '';
  return `It is ${current.status}, as wanted; ${last}; without another the catalogue ${pause}deletes it in ${days(cancelsAtUs)}.`;
}

function actionFindings(name: string, { action, because }: Review): Finding[] {
  const check = checkName(name);
  switch (action) {
    case null:
      return [];
    case 'finish': {
      const message = 'A change of it was cut short.';
      return [{ check, state: 'warn', message, advice: '`earshot register` finishes it.' }];
    }
    case 'resume': {
      const message = `It is paused, and nothing is delivered: ${because}.`;
      return [{ check, state: 'fail', message, advice: '`earshot maintain` resumes it.' }];
    }
    case 'recreate': {
      const message = `It is gone, and nothing is delivered: ${because}.`;
      return [{ check, state: 'fail', message, advice: '`earshot maintain` makes it anew.' }];
    }
  }
}

function noteFinding(name: string, { code, message, advice }: Note): Finding {
  const state = missing.test(code) ? 'fail' : 'warn';
  return { check: checkName(name), state, message, advice: advice ?? adviceFor(code, name) };
}

function adviceFor(code: string, name: string): string {
  if (code === 'pause-ahead') return 'Check that its filter still matches something.';
  if (code === 'paused-by-command') return `\`earshot subscriptions resume ${name}\` resumes it.`;
  return '`earshot register --dry-run` shows what differs.';
}

function credentialFindings(
  { name, credentialsDigest }: Registration,
  pairs: readonly EndpointCredentials[],
): Finding[] {
  // Where neither is known there is nothing to compare.
  if (credentialsDigest === null || pairs.length === 0) return [];
  if (pairs.some((pair) => isDigestOf(credentialsDigest, pair))) return [];
  const message = 'The catalogue was given other endpoint credentials than the receiver accepts.';
  const advice = '`earshot register` gives it those of now.';
  return [{ check: checkName(name), state: 'fail', message, advice }];
}

function checkName(name: string): string {
  return `subscription ${name}`;
}

function shortTime(us: number): string {
  return formatDateUs(us).slice(0, 16).replace('T', ' ');
}
