/** The thread that answers questions about products, so that no search delays an answer of the receiver. */
import { AppError } from '../../domain/app-error.ts';
import { createReaderConnection } from '../engine/database.ts';
import { type Call, serveThread } from '../engine/serve-thread.ts';
import { createIndexConnection } from './index-connection.ts';
import { indexedPosition } from './index-progress.ts';
import { type DelaysQuestion, measureDelays } from './product-delays.ts';
import { isDamage } from './product-file.ts';
import {
  countProducts,
  explainSearch,
  indexState,
  type ProductDatabases,
  productPage,
} from './product-questions.ts';
import { type EventsQuestion, pushedEvents } from './pushed-events.ts';

interface Context extends ProductDatabases {
  call: Call;
}

const operations = {
  page: productPage,
  count: ({ call, ...databases }: Context, query: Parameters<typeof countProducts>[1]) =>
    countProducts(databases, query, call.pause),
  explain: explainSearch,
  indexState,
  indexedPosition,
  pushedEvents: ({ index }: Context, question: EventsQuestion) => pushedEvents(index, question),
  delays: ({ call, ...databases }: Context, question: DelaysQuestion) =>
    measureDelays(databases, question, call.pause),
};
export type ProductOperations = typeof operations;

serveThread<Context>(({ dataDir }) => {
  const log = createReaderConnection(dataDir);
  const index = createIndexConnection(dataDir);
  return {
    operations,
    context: (call) => ({ ...index.open(), log: log.database(), call }),
    failure: (error) => (isDamage(error) ? damaged(error) : error),
    close: () => {
      index.close();
      log.close();
    },
  };
});

function damaged(cause: unknown): AppError {
  return new AppError(
    'unavailable',
    'The product index is damaged. Run `earshot index rebuild`: it is made anew from the log, which is safe.',
    { cause },
  );
}
