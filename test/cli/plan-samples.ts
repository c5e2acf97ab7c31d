/** Plans and their steps, each with its text and its JSON. */
import { expect } from 'vitest';
import type { Plan, PlanStep } from '../../src/admin/plan.ts';
import type { CatalogueSubscription } from '../../src/admin/subscription-client.ts';
import type { DesiredSubscription } from '../../src/domain/subscription.ts';

export const publicUrl = 'https://earshot.example.org:8443';
export const endpoint = `${publicUrl}/notifications/alps`;

export const desired: DesiredSubscription = {
  name: 'alps',
  type: 'push',
  events: ['created', 'modified'],
  filter: "Collection/Name eq 'SENTINEL-2'",
  status: 'running',
};

export const current: CatalogueSubscription = {
  id: 'c06f2e68',
  status: 'running',
  type: 'push',
  events: ['created'],
  filter: "Collection/Name eq 'SENTINEL-1'",
  endpoint,
  submittedAtUs: 1,
  lastNotificationAtUs: null,
};

const { type, events, filter, status } = desired;
const desiredState = { type, events, filter, status, endpoint };
/** An empty plan for an account without subscriptions. */
export const empty: Plan = {
  steps: [],
  unchanged: [],
  obsolete: [],
  unmanaged: [],
  counts: { running: 0, total: 0 },
};

export function replacing(changes: Partial<Extract<PlanStep, { kind: 'replace' }>> = {}): PlanStep {
  return {
    kind: 'replace',
    desired,
    old: [current],
    ready: null,
    differs: ['events', 'filter'],
    way: 'overlap',
    ...changes,
  };
}

type Edit = Extract<PlanStep, { kind: 'edit' }>;

const editing = (edit: Edit['edit'], more: Partial<Edit> = {}): PlanStep => ({
  ...{ kind: 'edit', desired, current, edit, adopted: false },
  ...more,
});

const id = '    id        c06f2e68';
const changedEvents = ['    - events  created', '    + events  created, modified'];
const json = { name: 'alps', id: 'c06f2e68', wanted: desiredState };
const paused = { ...desiredState, status: 'paused' };
const replaced = (first: string[], ...more: unknown[]) =>
  ['~ replace   alps', '    id      c06f2e68', ...first, ...more] as string[];

/** Title, step, its lines, and its JSON. */
export const shownSteps: [string, PlanStep, string[], object][] = [
  [
    'that creates',
    { kind: 'create', desired },
    [
      '+ create    alps',
      '    events  created, modified',
      "    filter  Collection/Name eq 'SENTINEL-2'",
      '    status  running',
    ],
    { ...json, actions: ['create'], id: null },
  ],
  [
    'that creates for every product',
    { kind: 'create', desired: { ...desired, filter: '' } },
    [
      '+ create    alps',
      '    events  created, modified',
      '    filter  (none: all products)',
      '    status  running',
    ],
    { ...json, actions: ['create'], id: null, wanted: { ...desiredState, filter: '' } },
  ],
  [
    'that adopts',
    { kind: 'adopt', desired, current },
    ['= adopt     alps', '    id      c06f2e68'],
    { ...json, actions: ['adopt'] },
  ],
  [
    'that resumes',
    editing({ status: 'running' }, { current: { ...current, status: 'paused' } }),
    ['~ resume    alps', id, '    - status    paused', '    + status    running'],
    { ...json, actions: ['resume'] },
  ],
  [
    'that adopts and changes everything that can be',
    editing(
      { status: 'paused', endpoint, credentials: true },
      {
        desired: { ...desired, status: 'paused' },
        current: { ...current, endpoint: 'https://old.example.org/notifications/alps' },
        adopted: true,
      },
    ),
    [
      ...['~ adopt, pause, change endpoint, change credentials alps', id],
      ...['    - status    running', '    + status    paused'],
      '    - endpoint  https://old.example.org/notifications/alps',
      `    + endpoint  ${endpoint}`,
    ],
    {
      ...{ ...json, wanted: paused },
      actions: ['adopt', 'pause', 'change endpoint', 'change credentials'],
    },
  ],
  [
    'that changes credentials alone',
    editing({ credentials: true }),
    ['~ change credentials alps', id],
    { ...json, actions: ['change credentials'] },
  ],
  [
    'that gives an endpoint to one that has none',
    editing({ endpoint }, { current: { ...current, endpoint: null } }),
    ['~ change endpoint alps', id, '    - endpoint  none', `    + endpoint  ${endpoint}`],
    { ...json, actions: ['change endpoint'] },
  ],
  [
    'that replaces because of events and filter',
    replacing(),
    replaced(
      changedEvents,
      "    - filter  Collection/Name eq 'SENTINEL-1'",
      "    + filter  Collection/Name eq 'SENTINEL-2'",
      expect.stringMatching(
        /^ {4}the new subscription starts before the old one is deleted: no gap/,
      ),
    ),
    {
      ...{ ...json, id: null, actions: ['replace'], replaces: ['c06f2e68'] },
      ...{ differs: ['events', 'filter'], way: 'overlap' },
    },
  ],
  [
    'that replaces and pauses',
    replacing({ desired: { ...desired, status: 'paused' }, differs: ['events'] }),
    replaced(
      [...changedEvents, '    - status  running', '    + status  paused'],
      expect.stringMatching(/the new subscription starts before/),
    ),
    expect.objectContaining({ wanted: paused, differs: ['events'] }),
  ],
  [
    'that changes places',
    replacing({ differs: ['events'], way: 'switch' }),
    replaced(
      changedEvents,
      expect.stringMatching(/replaces the old one; the short gap is recorded$/),
    ),
    expect.objectContaining({ differs: ['events'], way: 'switch' }),
  ],
  [
    'that deletes first',
    replacing({ differs: ['filter'], way: 'delete-first', desired: { ...desired, filter: '' } }),
    replaced(
      ["    - filter  Collection/Name eq 'SENTINEL-1'", '    + filter  (none: all products)'],
      expect.stringMatching(
        /the old subscription is deleted before the new one .*; the gap is recorded$/,
      ),
    ),
    expect.objectContaining({ differs: ['filter'], way: 'delete-first' }),
  ],
  [
    'that ends a replacement cut short',
    replacing({
      old: [current, { ...current, id: 'another' }],
      ready: { ...current, id: 'ready' },
      differs: [],
    }),
    [
      ...['~ replace   alps', '    id      c06f2e68, another'],
      '    replacement ready already exists',
      expect.stringMatching(/the new subscription starts/),
    ],
    expect.objectContaining({ replaces: ['c06f2e68', 'another'], differs: [] }),
  ],
  [
    'that deletes',
    { kind: 'delete', name: 'alps', current: { ...current, filter: '' } },
    ['- delete    alps', '    id      c06f2e68', '    filter  (none: all products)'],
    { name: 'alps', actions: ['delete'], id: 'c06f2e68' },
  ],
  [
    'that removes our record',
    { kind: 'forget', name: 'alps' },
    ['- forget    alps', '    removed from the data directory'],
    { name: 'alps', actions: ['forget'], id: null },
  ],
];
