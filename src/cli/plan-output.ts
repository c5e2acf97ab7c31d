/** Formats a plan as a readable difference or as JSON. */
import {
  type AccountLimits,
  nameOf,
  type Plan,
  type PlanStep,
  type ReplacementWay,
} from '../admin/plan.ts';
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

/** Actions of a step: `replace`, `resume, change credentials`, … */
export function actionsOf(step: PlanStep): string[] {
  if (step.kind !== 'edit') return [step.kind];
  const { status, endpoint, credentials } = step.edit;
  return [
    ...(step.adopted ? ['adopt'] : []),
    ...(status === undefined ? [] : [status === 'running' ? 'resume' : 'pause']),
    ...(endpoint === undefined ? [] : ['change endpoint']),
    ...(credentials === undefined ? [] : ['change credentials']),
  ];
}

/** Formats the plan with one block per step, and a last line with the account limits. */
export function planText(plan: Plan, limits: AccountLimits, paint: Paint): string {
  const { steps, unchanged, obsolete, unmanaged, counts } = plan;
  const pruned = new Set(steps.flatMap((step) => ('name' in step ? [step.name] : [])));
  const kept = obsolete.filter((name) => !pruned.has(name)).map(printable);
  const lines = steps.map((step) => stepText(step, paint));
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

/** Converts a step to the JSON fields that the command documents. */
export function stepJson(step: PlanStep, publicUrl: string | null) {
  const name = nameOf(step);
  const id = 'current' in step ? step.current.id : null;
  const base = { name, actions: actionsOf(step), id };
  if (step.kind === 'delete' || step.kind === 'forget') return base;
  const { type, events, filter, status } = step.desired;
  const desired = { type, events, filter, status, endpoint: endpointFor(publicUrl, step.desired) };
  if (step.kind !== 'replace') return { ...base, wanted: desired };
  const replaces = step.old.map(({ id: old }) => old);
  return { ...base, wanted: desired, replaces, differs: step.differs, way: step.way };
}

const signs = {
  create: ['green', '+'],
  delete: ['red', '-'],
  forget: ['red', '-'],
  adopt: ['yellow', '='],
  edit: ['yellow', '~'],
  replace: ['yellow', '~'],
} as const;

function stepText(step: PlanStep, paint: Paint): string {
  const [colour, sign] = signs[step.kind];
  const head = `${paint(colour, sign)} ${actionsOf(step).join(', ').padEnd(9)} ${paint('bold', printable(nameOf(step)))}`;
  return [head, ...linesOf(step, paint).map((line) => `    ${line}`)].join('\n');
}

function linesOf(step: PlanStep, paint: Paint): string[] {
  switch (step.kind) {
    case 'create': {
      const { type, events, filter, status } = step.desired;
      return [
        ...(type === 'pull' ? ['type    pull'] : []),
        `events  ${events.join(', ')}`,
        `filter  ${filterText(filter)}`,
        `status  ${status}`,
      ];
    }
    case 'adopt':
      return [`id      ${printable(step.current.id)}`, ...adoptionNote(step)];
    case 'delete': {
      const { id, filter } = step.current;
      return [`id      ${printable(id)}`, `filter  ${filterText(filter)}`];
    }
    case 'forget':
      return ['removed from the data directory'];
    case 'edit': {
      const { current, edit } = step;
      return [
        `id        ${printable(current.id)}`,
        ...changed('status    ', current.status, edit.status, paint),
        ...changed('endpoint  ', current.endpoint ?? 'none', edit.endpoint, paint),
        ...(step.adopted ? adoptionNote(step) : []),
      ];
    }
    case 'replace':
      return replaceLines(step, paint);
  }
}

function replaceLines(
  { desired, old, ready, differs, way }: Extract<PlanStep, { kind: 'replace' }>,
  paint: Paint,
): string[] {
  const [first] = old;
  const lines: string[] = [];
  if (first !== undefined) {
    lines.push(`id      ${old.map(({ id }) => printable(id)).join(', ')}`);
    for (const field of differs) {
      const text = (one: { type: string; events: readonly string[]; filter: string }) =>
        field === 'filter' ? filterText(one.filter) : [one[field]].flat().join(', ');
      lines.push(...changed(`${field}  `, text(first), text(desired), paint));
    }
    if (first.status !== desired.status) {
      lines.push(...changed('status  ', first.status, desired.status, paint));
    }
  }
  if (ready !== null) lines.push(`replacement ${printable(ready.id)} already exists`);
  lines.push(paint('dim', ways[way]));
  return lines;
}

type AdoptStep = Extract<PlanStep, { kind: 'adopt' }>;

/** The other reader of an adopted queue, if there is one, would miss what earshot acknowledges. */
function adoptionNote({ desired, current }: Pick<AdoptStep, 'desired' | 'current'>): string[] {
  if (desired.type !== 'pull') return [];
  const { lastNotificationAtUs: lastUs } = current;
  return [
    ...(lastUs === null ? [] : [`it was last read at ${shortDateUs(lastUs)}`]),
    'earshot reads and acknowledges its queue: no other program may read this subscription',
  ];
}

/** Lines with the old and the new value; none without a change. */
function changed(label: string, from: string, to: string | undefined, paint: Paint): string[] {
  if (to === undefined) return [];
  return [
    paint('red', `- ${label}${printable(from)}`),
    paint('green', `+ ${label}${printable(to)}`),
  ];
}

function filterText(filter: string): string {
  return filter === '' ? '(none: all products)' : printable(filter);
}
