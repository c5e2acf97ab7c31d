/** Loads the sinks of each folder it is told, as the program does: no test runner in between. */
import {
  type LoadedSinks as EachSink,
  faultySinks,
  loadEachSink,
} from '../../src/config/sinks-config.ts';
import { loadSubscriptionsFile } from '../../src/config/subscriptions-file.ts';
import type { AppError } from '../../src/domain/app-error.ts';
import type { SinkDefinition } from '../../src/domain/sinks.ts';

type Refusal = Pick<AppError, 'code' | 'message' | 'details'>;

/** What is sent back for each folder. */
export interface LoadedSinks {
  /** Or what is said where one that is faulty is asked for. */
  sinks: readonly SinkDefinition[] | Refusal;
  /** The sound and the faulty ones. */
  each: EachSink | Refusal;
  /** Names of the subscriptions, which are nobody's business here. */
  subscriptions: string[] | Refusal;
}

process.on('message', async (folder: string) => {
  const each = await loadEachSink(folder).catch(refusalOf);
  const subscriptions = await loadSubscriptionsFile(folder).then(
    (loaded) => (loaded ?? []).map(({ name }) => name),
    refusalOf,
  );
  process.send?.({ sinks: allOf(folder, each), each, subscriptions } satisfies LoadedSinks);
});

function allOf(folder: string, each: EachSink | Refusal): LoadedSinks['sinks'] {
  if (!('faulty' in each)) return each;
  return each.faulty.length === 0 ? each.definitions : refusalOf(faultySinks(folder, each.faulty));
}

function refusalOf({ code, message, details }: AppError): Refusal {
  return { code, message, details };
}
