/** `earshot filter explain`: a filter in plain words, and with --plan what of it the product index answers. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readDataConfig } from '../../config/read-config.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import type { FilterTree } from '../../domain/filter-tree.ts';
import { printable } from '../../domain/printable.ts';
import type { QueryExplanation } from '../../domain/products.ts';
import { describeFilter } from '../../filter/describe.ts';
import { printFilter } from '../../filter/print.ts';
import { databaseFileName } from '../../store/engine/database.ts';
import type { Io } from '../io.ts';
import { withIndex } from '../products/current-index.ts';
import { explanationLines } from '../products/explanation.ts';
import { writeForeign, writeOut } from '../write-out.ts';
import type { FilterArgument } from './filter-argument.ts';
import { readFilter } from './read-filter.ts';

export async function explainFilter(
  { text, entity }: FilterArgument,
  { json, plan }: { json?: true; plan?: true },
  io: Io,
): Promise<void> {
  const filter = readFilter(text, entity, io);
  const words = filter === null ? ['Everything matches.'] : describeFilter(filter);
  const index = plan === true ? await indexPart({ entity, filter }, io) : null;
  if (json) {
    const canonical = filter === null ? '' : printFilter(filter);
    const shown = { entity, canonical, words, index };
    return writeForeign(io.stdout, `${JSON.stringify(shown, null, 2)}\n`);
  }
  const lines = words.map(printable);
  if (index !== null) lines.push('', 'With the product index:', ...explanationLines(index));
  await writeOut(io.stdout, `${lines.join('\n')}\n`);
}

/** Null, with the reason on stderr, where there is no index. */
async function indexPart(
  query: { entity: FilterArgument['entity']; filter: FilterTree | null },
  io: Io,
): Promise<QueryExplanation | null> {
  const { dataDir } = readDataConfig(io);
  const warn = (reason: string) =>
    void io.stderr.write(`The product index is not shown: ${reason}\n`);
  if (!existsSync(join(dataDir, databaseFileName))) {
    warn(`there is no database in ${printable(dataDir)} (EARSHOT_DATA_DIR).`);
    return null;
  }
  let explanation: QueryExplanation | null = null;
  try {
    await withIndex(dataDir, async (products) => {
      explanation = await products.explain(query);
    });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    warn(printable(errorText(error)));
  }
  return explanation;
}
