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
  if (old.length === 0) return { ...base, wanted: state };
  return { ...base, wanted: state, replaces: old.map(({ id }) => id), differs, way };
}

function differenceText(one: Difference, paint: Paint): string {
  const { name, desired, current, old } = one;
  const isNew = current === null && old.length === 0;
  const [colour, sign] =
    desired === null
      ? (['red', '-'] as const)
      : isNew
        ? (['green', '+'] as const)
        : (['yellow', '~'] as const);
  const head = `${paint(colour, sign)} ${actionsOf(one).join(', ').padEnd(9)} ${paint('bold', printable(name))}`;
  const lines = isNew ? newLines(one) : changeLines(one, paint);
  return [head, ...lines.map((line) => `    ${line}`)].join('\n');
}

function newLines({ desired }: Difference): string[] {
  if (desired === null) return ['removed from the data directory'];
  const { type, events, filter, status } = desired;
  return [
    ...(type === 'pull' ? ['type    pull'] : []),
    `events  ${events.join(', ')}`,
    `filter  ${filterText(filter)}`,
    `status  ${status}`,
  ];
}

function changeLines(one: Difference, paint: Paint): string[] {
  const { desired, current, edit, old, differs, way, adopted } = one;
  const lines: string[] = [];
  const [first] = old;
  if (current !== null) {
    lines.push(
      `id      ${printable(current.id)}`,
      ...changed('status    ', current.status, edit.status, paint),
      ...changed('endpoint  ', current.endpoint ?? 'none', edit.endpoint, paint),
      ...(adopted && desired?.type === 'pull' ? adoptionNote(current.lastNotificationAtUs) : []),
    );
  }
  if (first === undefined) return lines;
  lines.push(
    `${current === null ? 'id    ' : 'deletes'}  ${old.map(({ id }) => printable(id)).join(', ')}`,
  );
  if (desired === null) return [...lines, `filter  ${filterText(first.filter)}`];
  for (const field of differs) {
    const text = (of: { type: string; events: readonly string[]; filter: string }) =>
      field === 'filter' ? filterText(of.filter) : [of[field]].flat().join(', ');
    lines.push(...changed(`${field}  `, text(first), text(desired), paint));
  }
  if (current === null && first.status !== desired.status) {
    lines.push(...changed('status  ', first.status, desired.status, paint));
  }
  return [...lines, paint('dim', ways[way])];
}

/** The other reader of an adopted queue, if there is one, would miss what earshot acknowledges. */
const adoptionNote = (lastUs: number | null) => [
  ...(lastUs === null ? [] : [`it was last read at ${shortDateUs(lastUs)}`]),
  'earshot reads and acknowledges its queue: no other program may read this subscription',
];

/** Lines with the old and the new value; none without a change. */
function changed(label: string, from: string, to: string | undefined, paint: Paint): string[] {
  if (to === undefined) return [];
  return [
    paint('red', `- ${label}${printable(from)}`),
    paint('green', `+ ${label}${printable(to)}`),
  ];
}

const filterText = (filter: string) => (filter === '' ? '(none: all products)' : printable(filter));
