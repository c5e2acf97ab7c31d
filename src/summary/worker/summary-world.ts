/** What the making of summaries needs of the rest of the program. */
import type { TakeLock } from '../../domain/administration.ts';
import type { Cursors, Logger, NotificationLog } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';
import type { Summaries, SummaryBudget } from '../../domain/summaries.ts';
import type { ChatClient } from '../chat/chat-client.ts';
import type { Places } from '../places/places.ts';

export interface SummaryModel {
  /** `<vendor>/<model_name>`. */
  name: string;
  client: ChatClient;
}

export interface SummaryWorld {
  notifications: Pick<NotificationLog, 'find' | 'lastPosition'> & Pick<Cursors, 'cursor'>;
  products: Pick<Products, 'find' | 'indexedPosition'>;
  summaries: Summaries;
  /** Loads the map with the first call. */
  places: () => Places;
  /** Null where none is configured: templates are all there is. */
  model: SummaryModel | null;
  budget: SummaryBudget;
  takeLock: TakeLock;
  nowUs: () => number;
  random: () => number;
  log: Logger;
}
