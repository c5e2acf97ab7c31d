/** Brings the account to the desired state: plan, check of the endpoint, apply, verification. */
import { AppError } from '../domain/app-error.ts';
import { type DesiredSubscription, endpointFor } from '../domain/subscription.ts';
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
  /** By default true. Maintenance adopts nothing without a decision of the user. */
  adoptsPull?: boolean;
}

export interface PreparedPlan {
  options: PlanOptions;
  plan: Plan;
  /** Exceeded limits, one sentence each; empty for a plan that can be applied. */
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
    adoptsPull: options.adoptsPull ?? true,
    prune: options.prune === true,
    hasCredentials: ({ credentialsDigest }) => isDigestOf(credentialsDigest, context.credentials),
  });
  return { options, listed, listedAtUs: askedAtUs, ...fitPlan(plan, context.limits) };
}

/**
 * Applies a plan, then lists the account again to verify it. Rejects with `conflict` when a limit is
 * exceeded or the account differs afterwards, and with `unavailable` when the endpoint does not
 * answer as the catalogue requires. Completed steps stay, and a new plan continues from there.
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
  if (limitErrors.length > 0) throw limitsExceeded(prepared);
  const { skipProbe = false, onStep = () => undefined, ...why } = how;
  if (!skipProbe) await requireEndpoints(plan.steps, context);
  const credentialsDigest = digestCredentials(context.credentials, context.newSecret());
  for (const step of plan.steps) {
    onStep(step);
    await applyStep(step, { ...context, ...why, credentialsDigest, listed, listedAtUs });
  }
  if (plan.steps.length > 0) await verify(options, context);
}

export function limitsExceeded({ limitErrors, plan, options }: PreparedPlan): AppError {
  const prunable = options.prune !== true && plan.obsolete.length > 0;
  return new AppError(
    'conflict',
    'The plan exceeds the limits of the account. Nothing was changed.',
    {
      details: [
        ...limitErrors,
        ...(prunable
          ? [
              `Subscriptions that are no longer configured: ${plan.obsolete.join(', ')}. To delete them, add --prune.`,
            ]
          : []),
        "Pause or delete a subscription, or register the new one as paused. If the catalogue's limits have changed, set EARSHOT_SUBSCRIPTIONS_RUNNING_MAX and EARSHOT_SUBSCRIPTIONS_MAX.",
      ],
    },
  );
}

/** Specification, "What the service does", 5: a GET must return 200 before a subscription is created. */
async function requireEndpoints(
  steps: readonly PlanStep[],
  { probe, publicUrl, credentials }: AccountContext,
): Promise<void> {
  for (const step of steps) {
    const endpoint = needsEndpoint(step) ? endpointFor(publicUrl, step.desired) : null;
    if (endpoint === null) continue;
    const { fault } = await probe(endpoint, credentials);
    if (fault === null) continue;
    throw new AppError(
      'unavailable',
      `Nothing was changed, because the check of ${endpoint} failed: ${fault.message}`,
      {
        details: [
          fault.advice,
          'To run all checks: `earshot doctor`. If the endpoint can be reached from the Internet but not from this machine, add --skip-probe.',
        ],
      },
    );
  }
}

function needsEndpoint(step: PlanStep): step is Extract<PlanStep, { desired: unknown }> {
  if (step.kind === 'create' || step.kind === 'replace') return true;
  if (step.kind !== 'edit') return false;
  return step.edit.endpoint !== undefined || step.edit.credentials !== undefined;
}

async function verify(options: PlanOptions, context: AccountContext): Promise<void> {
  const { plan } = await preparePlan(options, context);
  if (plan.steps.length === 0) return;
  throw new AppError(
    'conflict',
    'The catalogue confirmed every step, but the account differs from the plan.',
    {
      details: [
        `Subscriptions that differ: ${[...new Set(plan.steps.map(nameOf))].join(', ')}. To show the differences, run \`earshot register --dry-run\`.`,
      ],
    },
  );
}
