/** How `earshot.config.ts` may give a filter. */
import { z } from 'zod';
import type { Expression } from '../filter/builder.ts';

/** An expression is known by what it can do: the file may have its own copy of this program. */
export const filterSchema = z
  .custom<string | Expression>(
    (value) =>
      typeof value === 'string' || z.looseObject({ tree: z.object() }).safeParse(value).success,
    'must be a string with a $filter expression, such as "Collection/Name eq \'SENTINEL-2\'", or an expression made with collection(…), and(…), …',
  )
  .transform(String);
