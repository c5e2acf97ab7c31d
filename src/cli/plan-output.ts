/** Shows a plan as a difference that a person can read, or as JSON. */
import type { AccountLimits } from '../admin/fit-plan.ts';
import type { Plan, PlanStep, ReplacementWay } from '../admin/plan.ts';
import { type DesiredSubscription, endpointOf } from '../domain/subscription.ts';
import { printable } from '../domain/text.ts';
import type { painter } from './output.ts';

type Paint = ReturnType<typeof painter>;

/** What happens on the way from the old one to the new one. */
const ways: Record<ReplacementWay, string> = {
  overlap: 'the new one runs before the old one goes: no event is missed, some may come twice',
  switch:
    'the new one is made paused, then the two change places: events of that moment are missed, and the gap is recorded',
  'delete-first':
    'the account is full, so the old one goes first: events until the new one runs are missed, and the gap is recorded',
};

/** A step in words: `replace`, `resume, change credentials`, … */
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

/** The whole plan, a block for each step, ending in a line on the limits. */
export function planText(plan: Plan, limits: AccountLimits, paint: Paint): string {
  const blocks = plan.steps.map((step) => stepText(step, paint));
  const { unchanged, unwanted, strangers, counts } = plan;
  const pruned = new Set(plan.steps.flatMap((step) => ('name' in step ? [step.name] : [])));
  const kept = unwanted.filter((name) => !pruned.has(name));
  return [
    ...blocks,
    ...(unchanged.length === 0
      ? []
      : [`${paint('green', '=')} as wanted: ${unchanged.join(', ')}`]),
    ...(kept.length === 0
      ? []
      : [
          `${paint('yellow', '!')} no longer wanted, and kept: ${kept.map(printable).join(', ')}  (--prune deletes)`,
        ]),
    paint(
      'dim',
      `  The account has ${counts.running} of ${limits.runningMax} running, ${counts.total} of ${limits.totalMax} in total${strangers.length === 0 ? '' : `; ${strangers.length} of them not ours, which stay untouched`}.`,
    ),
    '',
  ].join('\n');
}

/** A step for machines; `docs` of the command name the fields. */
export function stepJson(step: PlanStep, publicUrl: string) {
  const name = nameOf(step);
  const id = 'current' in step ? step.current.id : null;
  const base = { name, actions: actionsOf(step), id };
  if (step.kind === 'delete' || step.kind === 'forget') return base;
  const { events, filter, status } = step.desired;
  const wanted = { events, filter, status, endpoint: endpointOf(publicUrl, name) };
  if (step.kind !== 'replace') return { ...base, wanted };
  const replaces = step.old.map(({ id: old }) => old);
  return { ...base, wanted, replaces, differs: step.differs, way: step.way };
}

function stepText(step: PlanStep, paint: Paint): string {
  const colour = { create: 'green', delete: 'red', forget: 'red' } as const;
  const sign = { create: '+', delete: '-', forget: '-', adopt: '=', edit: '~', replace: '~' };
  const style = step.kind in colour ? colour[step.kind as keyof typeof colour] : 'yellow';
  const head = `${paint(style, sign[step.kind])} ${actionsOf(step).join(', ').padEnd(9)} ${paint('bold', printable(nameOf(step)))}`;
  return [head, ...linesOf(step, paint).map((line) => `    ${line}`)].join('\n');
}

function linesOf(step: PlanStep, paint: Paint): string[] {
  switch (step.kind) {
    case 'create':
      return wantedLines(step.desired);
    case 'adopt':
      return [`id      ${printable(step.current.id)}`];
    case 'delete':
      return [
        `id      ${printable(step.current.id)}`,
        `filter  ${filterText(step.current.filter)}`,
      ];
    case 'forget':
      return ['it is no longer remembered here'];
    case 'edit':
      return editLines(step, paint);
    case 'replace':
      return replaceLines(step, paint);
  }
}

function wantedLines({ events, filter, status }: DesiredSubscription): string[] {
  return [`events  ${events.join(', ')}`, `filter  ${filterText(filter)}`, `status  ${status}`];
}

function editLines({ current, edit }: Extract<PlanStep, { kind: 'edit' }>, paint: Paint): string[] {
  return [
    `id        ${printable(current.id)}`,
    ...(edit.status === undefined ? [] : changed('status    ', current.status, edit.status, paint)),
    ...(edit.endpoint === undefined
      ? []
      : changed('endpoint  ', current.endpoint ?? 'none', edit.endpoint, paint)),
  ];
}

function replaceLines(
  { desired, old, ready, differs, way }: Extract<PlanStep, { kind: 'replace' }>,
  paint: Paint,
): string[] {
  const [first] = old;
  const lines =
    first === undefined ? [] : [`id      ${old.map(({ id }) => printable(id)).join(', ')}`];
  if (first !== undefined && differs.includes('events')) {
    lines.push(...changed('events  ', first.events.join(', '), desired.events.join(', '), paint));
  }
  if (first !== undefined && differs.includes('filter')) {
    lines.push(...changed('filter  ', filterText(first.filter), filterText(desired.filter), paint));
  }
  if (first !== undefined && first.status !== desired.status) {
    lines.push(...changed('status  ', first.status, desired.status, paint));
  }
  if (ready !== null) lines.push(`its replacement ${printable(ready.id)} was made before`);
  lines.push(paint('dim', ways[way]));
  return lines;
}

function changed(label: string, from: string, to: string, paint: Paint): string[] {
  return [
    paint('red', `- ${label}${printable(from)}`),
    paint('green', `+ ${label}${printable(to)}`),
  ];
}

function filterText(filter: string): string {
  return filter === '' ? '(none: every product)' : printable(filter);
}

function nameOf(step: PlanStep): string {
  return 'desired' in step ? step.desired.name : step.name;
}
