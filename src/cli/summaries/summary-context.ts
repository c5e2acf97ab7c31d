/** Opens the context of summaries: store, index, map, and the model if one is configured. */
import type { Config } from '../../config/config.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';
import type { Store } from '../../store/store.ts';
import { createChatClient } from '../../summary/chat/chat-client.ts';
import { lazyPlaces } from '../../summary/places/places.ts';
import type { SummaryContext, SummaryModel } from '../../summary/worker/summary-context.ts';
import type { Io } from '../io.ts';

export function openSummaryContext(
  config: Config['summary'] & { dataDir: string },
  { store, products, log }: { store: Store; products: Products; log: Logger },
  io: Pick<Io, 'fetch' | 'nowUs' | 'random'>,
): SummaryContext {
  return {
    notifications: store,
    products,
    summaries: store.summaries,
    places: lazyPlaces(),
    model: modelOf(config, io),
    budget: config.budget,
    acquireLock: store.acquireLock,
    nowUs: io.nowUs,
    random: io.random,
    log,
  };
}

/** Returns null if no model is configured. */
function modelOf(
  { inference }: Pick<Config['summary'], 'inference'>,
  { fetch }: Pick<Io, 'fetch'>,
): SummaryModel | null {
  if (inference === null) return null;
  const { url: baseUrl, apiKey, model: name } = inference;
  return { name, client: createChatClient({ baseUrl, apiKey, fetch }) };
}
