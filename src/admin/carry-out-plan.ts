/** From what is wanted to an account that holds it: plan, look at the endpoint, apply, look again. */
import { AppError } from '../domain/app-error.ts';
import { type DesiredSubscription, endpointOf } from '../domain/subscription.ts';
import { applyStep } from './apply-plan.ts';
import type { ProbeEndpoint } from './endpoint-probe.ts';
import { type AccountLimits, fitPlan } from './fit-plan.ts';
import { makePlan, type Plan, type PlanStep } from './plan.ts';
import { digestCredentials, isDigestOf, listAccount, type StepWorld } from './plan-context.ts';

/** What the account is managed with. */
export interface AccountWorld
  extends Omit<StepWorld, 'listed' | 'listedAtUs' | 'credentialsDigest' | 'actor' | 'because'> {
  limits: AccountLimits;
  probe: ProbeEndpoint;
  newSecret: () => string;
}

export interface PlanOptions {
  desired: readonly DesiredSubscription[];
  movedFrom?: string | undefined;
  prune?: boolean;
}

export interface PreparedPlan {
  options: PlanOptions;
  plan: Plan;
  /** What goes beyond the limits; empty for a plan that can be carried out. */
  excess: string[];
  listed: StepWorld['listed'];
  listedAtUs: number;
}

/** Lists the account and makes the plan; changes nothing. */
export async function preparePlan(
  options: PlanOptions,
  world: AccountWorld,
): Promise<PreparedPlan> {
  const [{ listed, askedAtUs }, registrations] = await Promise.all([
    listAccount(world),
    world.administration.registrations(),
  ]);
  const plan = makePlan({
    desired: options.desired,
    listed,
    registrations,
    publicUrl: world.publicUrl,
    movedFrom: options.movedFrom,
    prune: options.prune === true,
    hasCredentials: ({ credentialsDigest }) => isDigestOf(credentialsDigest, world.credentials),
  });
  return { options, listed, listedAtUs: askedAtUs, ...fitPlan(plan, world.limits) };
}

/**
 * Carries a plan out and verifies it by listing again. Rejects with `conflict` when limits forbid it
 * or the account is not as planned afterwards, `unavailable` when our endpoint does not answer as the
 * catalogue needs it; what was done until then is kept, and a new plan goes on from there.
 */
export async function carryOut(
  prepared: PreparedPlan,
  world: AccountWorld,
  how: Pick<StepWorld, 'actor' | 'because'> & {
    skipProbe?: boolean;
    onStep?: (step: PlanStep) => void;
  },
): Promise<void> {
  const { plan, excess, listed, listedAtUs, options } = prepared;
  if (excess.length > 0) throw beyondLimits(prepared);
  const { skipProbe = false, onStep = () => undefined, ...why } = how;
  if (!skipProbe) await requireEndpoints(plan.steps, world);
  const credentialsDigest = digestCredentials(world.credentials, world.newSecret());
  for (const step of plan.steps) {
    onStep(step);
    await applyStep(step, { ...world, ...why, credentialsDigest, listed, listedAtUs });
  }
  if (plan.steps.length > 0) await verify(options, world);
}

/** What to do when a plan goes beyond the limits. */
export function beyondLimits({
  excess,
  plan,
  options,
}: Pick<PreparedPlan, 'excess' | 'plan' | 'options'>): AppError {
  const prunable = options.prune !== true && plan.unwanted.length > 0;
  return new AppError('conflict', 'The account has no room for this; nothing was changed.', {
    details: [
      ...excess,
      ...(prunable
        ? [`${plan.unwanted.join(', ')}: no longer wanted. --prune makes that room.`]
        : []),
      "Pause or delete one, or register the new one as paused. If the catalogue's limits have changed: EARSHOT_SUBSCRIPTIONS_RUNNING_MAX, EARSHOT_SUBSCRIPTIONS_MAX.",
    ],
  });
}

/** Specification, "What the service does", 5: a GET must return 200 before a subscription is made. */
async function requireEndpoints(
  steps: readonly PlanStep[],
  { probe, publicUrl, credentials }: AccountWorld,
): Promise<void> {
  for (const step of steps) {
    if (!leadsToEndpoint(step)) continue;
    const endpoint = endpointOf(publicUrl, step.desired.name);
    const { fault } = await probe(endpoint, credentials);
    if (fault === null) continue;
    throw new AppError(
      'unavailable',
      `${endpoint} does not answer as the catalogue needs it, so nothing was changed: ${fault.message}`,
      {
        details: [
          fault.advice,
          '`earshot doctor` looks at everything. If the endpoint can be reached from outside but not from here: --skip-probe.',
        ],
      },
    );
  }
}

function leadsToEndpoint(step: PlanStep): step is Extract<PlanStep, { desired: unknown }> {
  if (step.kind === 'create' || step.kind === 'replace') return true;
  if (step.kind !== 'edit') return false;
  return step.edit.endpoint !== undefined || step.edit.credentials !== undefined;
}

async function verify(options: PlanOptions, world: AccountWorld): Promise<void> {
  const { plan } = await preparePlan(options, world);
  if (plan.steps.length === 0) return;
  const left = plan.steps.map((step) => ('desired' in step ? step.desired.name : step.name));
  throw new AppError(
    'conflict',
    'Every step was answered with success, but the account is not as planned.',
    {
      details: [
        `Not as wanted: ${[...new Set(left)].join(', ')}. Run \`earshot register --dry-run\` to see what differs.`,
      ],
    },
  );
}
