/** Formats a plan as a readable difference or as JSON. */
import type { AccountLimits, Difference, Plan, ReplacementWay } from '../admin/differences.ts';
import { shortDateUs } from '../domain/dates.ts';
import { endpointFor } from '../domain/subscription.ts';
import { printable } from '../domain/text.ts';
import type { painter } from './output.ts';

type Paint = ReturnType<typeof painter>;

/** Effect of each way to replace a subscription. */
const ways: Record<ReplacementWay, string> = {
  overlap:
    'the new subscription starts before the old one is deleted: no gap, but possible duplicates',
  switch:
    'the new subscription is created as paused and then replaces the old one; the short gap is recorded',
  'delete-first':
    'the account is full, so the old subscription is deleted before the new one is created; the gap is recorded',
};

/** Actions of a difference: `replace`, `resume, change credentials`, … */
export function actionsOf({ desired, current, edit, old, adopted }: Difference): string[] {
  if (desired === null) return [old.length > 0 ? 'delete' : 'remove'];
  if (current === null) return [old.length > 0 ? 'replace' : 'create'];
  return [
    ...(old.length > 0 ? ['replace'] : []),
    ...(adopted || Object.keys(edit).length + old.length === 0 ? ['adopt'] : []),
    ...(edit.status === undefined ? [] : [edit.status === 'running' ? 'resume' : 'pause']),
    ...(edit.endpoint === undefined ? [] : ['change endpoint']),
    ...(edit.credentials === undefined ? [] : ['change credentials']),
  ];
}

/** Formats the plan with one block per subscription, and a last line with the account limits. */
export function planText(plan: Plan, limits: AccountLimits, paint: Paint): string {
  const { differences, unchanged, obsolete, unmanaged, counts } = plan;
  const pruned = differences.flatMap(({ name, desired }) => (desired === null ? [name] : []));
  const kept = obsolete.filter((name) => !pruned.includes(name)).map(printable);
  const lines = differences.map((one) => differenceText(one, paint));
  if (unchanged.length > 0) lines.push(`${paint('green', '=')} unchanged: ${unchanged.join(', ')}`);
  if (kept.length > 0) {
    lines.push(
      `${paint('yellow', '!')} not configured, kept: ${kept.join(', ')}  (to delete: --prune)`,
    );
  }
  const others = unmanaged.length === 0 ? '' : `; ${unmanaged.length} unmanaged (never changed)`;
  const { runningMax, totalMax } = limits;
  const total = `  Subscriptions: ${counts.running} of ${runningMax} running, ${counts.total} of ${totalMax} in total${others}.`;
  return [...lines, paint('dim', total), ''].join('\n');
}

/** Converts a difference to the JSON fields that the command documents. */
export function differenceJson(one: Difference, publicUrl: string | null) {
  const { name, desired, current, old, differs, way } = one;
  const base = { name, actions: actionsOf(one), id: (current ?? old[0])?.id ?? null };
  if (desired === null) return base;
  const { type, events, filter, status } = desired;
  const state = { type, events, filter, status, endpoint: endpointFor(publicUrl, desired) };
  if (old.length === 0) return { ...base, desired: state };
  return { ...base, desired: state, replaces: old.map(({ id }) => id), differs, way };
}

function differenceText(one: Difference, paint: Paint): string {
  const { name, desired, current, old } = one;
  const before = current ?? old[0] ?? null;
  const [colour, sign] =
    desired === null
      ? (['red', '-'] as const)
      : before === null
        ? (['green', '+'] as const)
        : (['yellow', '~'] as const);
  const head = `${paint(colour, sign)} ${actionsOf(one).join(', ').padEnd(9)} ${paint('bold', printable(name))}`;
  return [head, ...linesOf(one, paint).map((line) => `    ${line}`)].join('\n');
}

function linesOf(one: Difference, paint: Paint): string[] {
  const { desired, current, edit, old, way, adopted } = one;
  const before = current ?? old[0] ?? null;
  const values = ({ type, events, filter, status }: Shown): Record<string, string> => ({
    ...{ type, status, events: events.join(', '), filter: filterText(filter) },
  });
  const [from, to] = [before && values(before), desired && values(desired)];
  const ids = old.map(({ id }) => printable(id)).join(', ');
  const lines = current === null ? [] : [`id        ${printable(current.id)}`];
  if (ids !== '') lines.push(`${current === null ? 'id      ' : 'deletes '}  ${ids}`);
  for (const field of ['type', 'events', 'filter', 'status']) {
    lines.push(...changed(field, from?.[field], to?.[field], paint));
  }
  if (edit.endpoint)
    lines.push(...changed('endpoint', current?.endpoint ?? '', edit.endpoint, paint));
  if (adopted && desired?.type === 'pull')
    lines.push(...adoptionNote(before?.lastNotificationAtUs));
  return old.length > 0 && desired !== null ? [...lines, paint('dim', ways[way])] : lines;
}

type Shown = { type: string; events: readonly string[]; filter: string; status: string };

/** The other reader of an adopted queue, if there is one, would miss what earshot acknowledges. */
const adoptionNote = (lastUs: number | null | undefined) => [
  ...(lastUs == null ? [] : [`it was last read at ${shortDateUs(lastUs)}`]),
  'earshot reads and acknowledges its queue: no other program may read this subscription',
];

/** Returns a line for a new or removed value, two for a changed one, none for an unchanged one. */
function changed(
  label: string,
  from: string | undefined,
  to: string | undefined,
  paint: Paint,
): string[] {
  const line = (value: string) => `${label.padEnd(8)}  ${printable(value)}`;
  if (from === to) return [];
  if (from === undefined || to === undefined) return [line(from ?? to ?? '')];
  return [paint('red', `- ${line(from)}`), paint('green', `+ ${line(to)}`)];
}

const filterText = (filter: string) => (filter === '' ? '(none: all products)' : filter);
