/** `/api/marks`. */
import { z } from 'zod';
import { apiRoute } from '../../src/core/api/api-route.ts';
import type { ConsoleParts, ServedRoute } from '../../src/core/api/listener-slot.ts';

export const routes = ({ marks }: ConsoleParts): ServedRoute[] => {
  const route = apiRoute({
    path: '/api/marks',
    operationId: 'listMarks',
    summary: 'Marked products',
    description: 'Ids of the marked products, the first mark first.',
    query: z.strictObject({}),
    answer: z.object({ marks: z.array(z.string()) }),
    respond: async () => ({ body: { marks: await marks.list() } }),
  });
  return [{ route, line: 'log' }];
};
