/** From what is wanted to an account that holds it: plan, look at the endpoint, apply, look again. */
import { AppError } from '../domain/app-error.ts';
import { type DesiredSubscription, endpointOf } from '../domain/subscription.ts';
import { applyStep } from './apply-step.ts';
import { fitPlan, makePlan, nameOf, type Plan, type PlanStep } from './plan.ts';
import {
  type AccountContext,
  digestCredentials,
  isDigestOf,
  listAccount,
  type StepContext,
} from './plan-context.ts';

export interface PlanOptions {
  desired: readonly DesiredSubscription[];
  movedFrom?: string | undefined;
  prune?: boolean;
}

export interface PreparedPlan {
  options: PlanOptions;
  plan: Plan;
  /** What goes beyond the limits; empty for a plan that can be carried out. */
  limitErrors: string[];
  listed: StepContext['listed'];
  listedAtUs: number;
}

/** Lists the account and makes the plan; changes nothing. */
export async function preparePlan(
  options: PlanOptions,
  context: AccountContext,
): Promise<PreparedPlan> {
  const [{ listed, askedAtUs }, registrations] = await Promise.all([
    listAccount(context),
    context.administration.registrations(),
  ]);
  const plan = makePlan({
    desired: options.desired,
    listed,
    registrations,
    publicUrl: context.publicUrl,
    movedFrom: options.movedFrom,
    prune: options.prune === true,
    hasCredentials: ({ credentialsDigest }) => isDigestOf(credentialsDigest, context.credentials),
  });
  return { options, listed, listedAtUs: askedAtUs, ...fitPlan(plan, context.limits) };
}

/**
 * Carries a plan out and verifies it by listing again. Rejects with `conflict` when limits forbid it
 * or the account is not as planned afterwards, `unavailable` when our endpoint does not answer as the
 * catalogue needs it; what was done until then is kept, and a new plan goes on from there.
 */
export async function applyPlan(
  prepared: PreparedPlan,
  context: AccountContext,
  how: Pick<StepContext, 'actor' | 'reason'> & {
    skipProbe?: boolean;
    onStep?: (step: PlanStep) => void;
  },
): Promise<void> {
  const { plan, limitErrors, listed, listedAtUs, options } = prepared;
  if (limitErrors.length > 0) throw beyondLimits(prepared);
  const { skipProbe = false, onStep = () => undefined, ...why } = how;
  if (!skipProbe) await requireEndpoints(plan.steps, context);
  const credentialsDigest = digestCredentials(context.credentials, context.newSecret());
  for (const step of plan.steps) {
    onStep(step);
    await applyStep(step, { ...context, ...why, credentialsDigest, listed, listedAtUs });
  }
  if (plan.steps.length > 0) await verify(options, context);
}

/** What to do when a plan goes beyond the limits. */
export function beyondLimits({ limitErrors, plan, options }: PreparedPlan): AppError {
  const prunable = options.prune !== true && plan.obsolete.length > 0;
  return new AppError('conflict', 'The account has no room for this; nothing was changed.', {
    details: [
      ...limitErrors,
      ...(prunable
        ? [`${plan.obsolete.join(', ')}: no longer wanted. --prune makes that room.`]
        : []),
      "Pause or delete one, or register the new one as paused. If the catalogue's limits have changed: EARSHOT_SUBSCRIPTIONS_RUNNING_MAX, EARSHOT_SUBSCRIPTIONS_MAX.",
    ],
  });
}

/** Specification, "What the service does", 5: a GET must return 200 before a subscription is made. */
async function requireEndpoints(
  steps: readonly PlanStep[],
  { probe, publicUrl, credentials }: AccountContext,
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

async function verify(options: PlanOptions, context: AccountContext): Promise<void> {
  const { plan } = await preparePlan(options, context);
  if (plan.steps.length === 0) return;
  throw new AppError(
    'conflict',
    'Every step was answered with success, but the account is not as planned.',
    {
      details: [
        `Not as wanted: ${[...new Set(plan.steps.map(nameOf))].join(', ')}. Run \`earshot register --dry-run\` to see what differs.`,
      ],
    },
  );
}
