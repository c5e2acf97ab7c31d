/** `earshot filter check`: errors and warnings of a filter. */
import { AppError } from '../../domain/app-error.ts';
import { checkFilter } from '../../filter/check.ts';
import { type FilterFinding, isKnownRefusal } from '../../filter/finding.ts';
import { printFilter } from '../../filter/print.ts';
import type { Io } from '../io.ts';
import { writeForeign, writeOut } from '../write-out.ts';
import type { FilterArgument } from './filter-argument.ts';
import { findingText } from './read-filter.ts';

/** Rejects with `usage` for a filter with an error. */
export async function checkAndTell(
  { text, entity }: FilterArgument,
  { json }: { json?: true },
  io: Io,
): Promise<void> {
  const { tree, findings } = checkFilter(text, entity);
  const errors = findings.filter(({ severity }) => severity === 'error');
  const valid = errors.length === 0;
  if (json) {
    // A blank one is what a subscription to everything has.
    const spelled = tree === null ? '' : printFilter(tree);
    const canonical = valid ? spelled : null;
    const shown = { valid, entity, canonical, findings: findings.map(toShown) };
    await writeForeign(io.stdout, `${JSON.stringify(shown, null, 2)}\n`);
  } else {
    for (const finding of findings) {
      await writeOut(io.stdout, `${findingText(text, finding, io, io.stdout)}\n`);
    }
  }
  if (!valid) {
    const count = errors.length === 1 ? 'an error' : `${errors.length} errors`;
    const why = errors.some(isKnownRefusal)
      ? 'The catalogue would refuse it.'
      : 'earshot cannot use it.';
    throw new AppError('usage', `The filter has ${count}. ${why}`);
  }
  if (!json) io.stderr.write(`The filter is valid for ${entity}.\n`);
}

/** Every field is always there, so that programs need not ask. */
function toShown({ severity, code, message, expected, hint, start, end }: FilterFinding) {
  return { severity, code, message, expected: expected ?? null, hint: hint ?? null, start, end };
}
