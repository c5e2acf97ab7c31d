/** The filter that a command is about: written out, or that of a subscription in `earshot.config.ts`. */
import { entitiesOf } from '../../admin/plan/check-filters.ts';
import { loadSubscriptionsFile, subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Entity } from '../../domain/filter-tree.ts';
import type { Io } from '../io.ts';

export interface FilterArgument {
  text: string;
  entity: Entity;
}

/** Throws `usage` for neither or both of them, and for a name that is none. */
export async function readFilterArgument(
  expression: string | undefined,
  { subscription, entity }: { subscription?: string; entity?: Entity },
  io: Pick<Io, 'workingDir'>,
): Promise<FilterArgument> {
  if (expression !== undefined && subscription !== undefined) {
    throw new AppError('usage', 'Give either an expression or --subscription, not both.');
  }
  if (expression === undefined && subscription === undefined) {
    throw new AppError(
      'usage',
      `Write the expression in quotes, or name a subscription of ${subscriptionsFileName}: \`earshot filter check "Collection/Name eq 'SENTINEL-2'"\``,
    );
  }
  if (subscription === undefined) return { text: expression ?? '', entity: entity ?? 'Products' };
  return ofSubscription(subscription, entity, io);
}

async function ofSubscription(
  name: string,
  entity: Entity | undefined,
  { workingDir }: Pick<Io, 'workingDir'>,
): Promise<FilterArgument> {
  const all = await loadSubscriptionsFile(workingDir);
  if (all === null) {
    throw new AppError('usage', `There is no ${subscriptionsFileName} in ${workingDir}.`);
  }
  const found = all.find((one) => one.name === name);
  if (found === undefined) {
    const names = all.map((one) => one.name).join(', ') || 'none';
    throw new AppError(
      'usage',
      `${subscriptionsFileName} names no subscription "${name}". It names: ${names}.`,
    );
  }
  const [own = 'Products', other] = entitiesOf(found.events);
  if (other !== undefined && entity === undefined) {
    throw new AppError(
      'usage',
      `"${name}" wants deletions and other events: say which ones with --entity ${own} or --entity ${other}.`,
    );
  }
  return { text: found.filter, entity: entity ?? own };
}
