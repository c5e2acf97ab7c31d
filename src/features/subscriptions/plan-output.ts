/** Formats a plan as a readable difference or as JSON. */
import type { AccountLimits, Difference, Plan, ReplacementWay } from '../../admin/differences.ts';
import type { painter } from '../../core/cli/output.ts';
import { endpointFor, filterText } from '../../core/terms/subscription.ts';
import { momentText, printable } from '../../core/terms/text.ts';

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
function actionsOf({ desired, current, edit, old, adopted }: Difference): string[] {
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
  const others = unmanaged.length === 0 ? '' : `; ${unmanaged.length} unmanaged (never changed)`;
  const total = `  Subscriptions: ${counts.running} of ${limits.runningMax} running, ${counts.total} of ${limits.totalMax} in total${others}.`;
  return [
    ...differences.flatMap((one) => differenceLines(one, paint)),
    ...(unchanged.length === 0
      ? []
      : [`${paint('green', '=')} unchanged: ${unchanged.join(', ')}`]),
    ...(kept.length === 0
      ? []
      : [`${paint('yellow', '!')} not configured, kept: ${kept.join(', ')}  (to delete: --prune)`]),
    ...[paint('dim', total), ''],
  ].join('\n');
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

const signs = {
  removed: (paint: Paint) => paint('red', '-'),
  added: (paint: Paint) => paint('green', '+'),
  changed: (paint: Paint) => paint('yellow', '~'),
};

/** Lists a new or removed value once, a changed one twice, and an unchanged one not at all. */
function differenceLines(one: Difference, paint: Paint): string[] {
  const { name, desired, current, edit, old, way, adopted } = one;
  const before = current ?? old[0] ?? null;
  const kind = desired === null ? 'removed' : before === null ? 'added' : 'changed';
  const line = (label: string, value: string) => `${label.padEnd(8)}  ${printable(value)}`;
  const changed = (label: string, from: string | undefined, to: string | undefined) => {
    if (from === to) return [];
    if (from === undefined || to === undefined) return [line(label, from ?? to ?? '')];
    return [paint('red', `- ${line(label, from)}`), paint('green', `+ ${line(label, to)}`)];
  };
  const [from, to] = [valuesOf(before), valuesOf(desired)];
  const lines = [
    ...(current === null ? [] : [line('id', current.id)]),
    ...(old.length === 0
      ? []
      : [line(current === null ? 'id' : 'deletes', old.map(({ id }) => id).join(', '))]),
    ...['type', 'events', 'filter', 'status'].flatMap((key) => changed(key, from[key], to[key])),
    ...(edit.endpoint ? changed('endpoint', current?.endpoint ?? '', edit.endpoint) : []),
    ...(adopted && desired?.type === 'pull' ? queueNotes(before?.lastNotificationAtUs) : []),
    ...(old.length > 0 && desired !== null ? [paint('dim', ways[way])] : []),
  ];
  const head = `${signs[kind](paint)} ${actionsOf(one).join(', ').padEnd(9)} ${paint('bold', printable(name))}`;
  return [head, ...lines.map((text) => `    ${text}`)];
}

function valuesOf(
  one: { type: string; events: readonly string[]; filter: string; status: string } | null,
): Readonly<Record<string, string>> {
  if (one === null) return {};
  const { type, events, filter, status } = one;
  return { type, status, events: events.join(', '), filter: filterText(filter) };
}

/** The other reader of an adopted queue, if there is one, would miss what earshot acknowledges. */
const queueNotes = (lastUs: number | null | undefined) => [
  ...(lastUs == null ? [] : [`it was last read at ${momentText(lastUs)}`]),
  'earshot reads and acknowledges its queue: no other program may read this subscription',
];
