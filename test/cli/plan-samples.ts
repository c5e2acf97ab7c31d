/** Plans and their steps, each with what is shown of it as text and as JSON. */
import { expect } from 'vitest';
import type { Plan, PlanStep } from '../../src/admin/plan.ts';
import type { CatalogueSubscription } from '../../src/admin/subscription-client.ts';
import type { DesiredSubscription } from '../../src/domain/subscription.ts';

export const publicUrl = 'https://earshot.example.org:8443';
export const endpoint = `${publicUrl}/notifications/alps`;

export const desired: DesiredSubscription = {
  name: 'alps',
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

const { events, filter, status } = desired;
const wanted = { events, filter, status, endpoint };
/** Nothing to do in an account that holds nothing. */
export const empty: Plan = {
  steps: [],
  unchanged: [],
  unwanted: [],
  strangers: [],
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

/** What a step is, the step, its lines, and its JSON. */
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
    { name: 'alps', actions: ['create'], id: null, wanted },
  ],
  [
    'that creates for every product',
    { kind: 'create', desired: { ...desired, filter: '' } },
    [
      '+ create    alps',
      '    events  created, modified',
      '    filter  (none: every product)',
      '    status  running',
    ],
    { name: 'alps', actions: ['create'], id: null, wanted: { ...wanted, filter: '' } },
  ],
  [
    'that adopts',
    { kind: 'adopt', desired, current },
    ['= adopt     alps', '    id      c06f2e68'],
    { name: 'alps', actions: ['adopt'], id: 'c06f2e68', wanted },
  ],
  [
    'that resumes',
    {
      kind: 'edit',
      desired,
      current: { ...current, status: 'paused' },
      edit: { status: 'running' },
      adopted: false,
    },
    [
      '~ resume    alps',
      '    id        c06f2e68',
      '    - status    paused',
      '    + status    running',
    ],
    { name: 'alps', actions: ['resume'], id: 'c06f2e68', wanted },
  ],
  [
    'that adopts and changes everything that can be',
    {
      kind: 'edit',
      desired: { ...desired, status: 'paused' },
      current: { ...current, endpoint: 'https://old.example.org/notifications/alps' },
      edit: { status: 'paused', endpoint, credentials: true },
      adopted: true,
    },
    [
      '~ adopt, pause, change endpoint, change credentials alps',
      '    id        c06f2e68',
      '    - status    running',
      '    + status    paused',
      '    - endpoint  https://old.example.org/notifications/alps',
      `    + endpoint  ${endpoint}`,
    ],
    {
      name: 'alps',
      actions: ['adopt', 'pause', 'change endpoint', 'change credentials'],
      id: 'c06f2e68',
      wanted: { ...wanted, status: 'paused' },
    },
  ],
  [
    'that changes credentials alone',
    { kind: 'edit', desired, current, edit: { credentials: true }, adopted: false },
    ['~ change credentials alps', '    id        c06f2e68'],
    { name: 'alps', actions: ['change credentials'], id: 'c06f2e68', wanted },
  ],
  [
    'that gives an endpoint to one that has none',
    {
      kind: 'edit',
      desired,
      current: { ...current, endpoint: null },
      edit: { endpoint },
      adopted: false,
    },
    [
      '~ change endpoint alps',
      '    id        c06f2e68',
      '    - endpoint  none',
      `    + endpoint  ${endpoint}`,
    ],
    { name: 'alps', actions: ['change endpoint'], id: 'c06f2e68', wanted },
  ],
  [
    'that replaces because of events and filter',
    replacing(),
    [
      '~ replace   alps',
      '    id      c06f2e68',
      '    - events  created',
      '    + events  created, modified',
      "    - filter  Collection/Name eq 'SENTINEL-1'",
      "    + filter  Collection/Name eq 'SENTINEL-2'",
      expect.stringMatching(/^ {4}the new one runs before the old one goes: no event is missed/),
    ],
    {
      name: 'alps',
      actions: ['replace'],
      id: null,
      wanted,
      replaces: ['c06f2e68'],
      differs: ['events', 'filter'],
      way: 'overlap',
    },
  ],
  [
    'that replaces and pauses',
    replacing({ desired: { ...desired, status: 'paused' }, differs: ['events'] }),
    [
      '~ replace   alps',
      '    id      c06f2e68',
      '    - events  created',
      '    + events  created, modified',
      '    - status  running',
      '    + status  paused',
      expect.stringMatching(/the new one runs before/),
    ],
    expect.objectContaining({ wanted: { ...wanted, status: 'paused' }, differs: ['events'] }),
  ],
  [
    'that changes places',
    replacing({ differs: ['events'], way: 'switch' }),
    [
      '~ replace   alps',
      '    id      c06f2e68',
      '    - events  created',
      '    + events  created, modified',
      expect.stringMatching(/change places.* missed, and the gap is recorded$/),
    ],
    expect.objectContaining({ differs: ['events'], way: 'switch' }),
  ],
  [
    'that deletes first',
    replacing({ differs: ['filter'], way: 'delete-first', desired: { ...desired, filter: '' } }),
    [
      '~ replace   alps',
      '    id      c06f2e68',
      "    - filter  Collection/Name eq 'SENTINEL-1'",
      '    + filter  (none: every product)',
      expect.stringMatching(/the old one goes first.* missed, and the gap is recorded$/),
    ],
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
      '~ replace   alps',
      '    id      c06f2e68, another',
      '    its replacement ready was made before',
      expect.stringMatching(/the new one runs/),
    ],
    expect.objectContaining({ replaces: ['c06f2e68', 'another'], differs: [] }),
  ],
  [
    'that deletes',
    { kind: 'delete', name: 'alps', current: { ...current, filter: '' } },
    ['- delete    alps', '    id      c06f2e68', '    filter  (none: every product)'],
    { name: 'alps', actions: ['delete'], id: 'c06f2e68' },
  ],
  [
    'that forgets',
    { kind: 'forget', name: 'alps' },
    ['- forget    alps', '    it is no longer remembered here'],
    { name: 'alps', actions: ['forget'], id: null },
  ],
];
