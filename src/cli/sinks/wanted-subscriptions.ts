/** Subscriptions that sinks want, looked up among those that there are or ever were. */
import { type UnknownSubscription, unknownSubscriptions } from '../../config/sinks.ts';
import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import type { CompletenessReader } from '../../domain/completeness.ts';
import type { SinkDefinition } from '../../domain/sinks.ts';
import type { Io } from '../io.ts';

/** Those that nobody knows. Rejects with `configuration` for a faulty file, `unavailable` where the store cannot be read. */
export async function unknownWanted(
  definitions: readonly SinkDefinition[],
  { completeness }: { completeness: Pick<CompletenessReader, 'definitions'> },
  { workingDir }: Pick<Io, 'workingDir'>,
): Promise<UnknownSubscription[]> {
  if (definitions.every(({ subscriptions }) => subscriptions.length === 0)) return [];
  const inFile = (await loadSubscriptionsFile(workingDir)) ?? [];
  const registered = await completeness.definitions();
  return unknownSubscriptions(definitions, [
    ...inFile.map(({ name }) => name),
    ...registered.map(({ subscription }) => subscription),
  ]);
}
