/** What `earshot coverage` does: reads the report and prints it. */
import { readCoverageConfig } from '../../config/completeness-config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { CompletenessReader } from '../../domain/completeness.ts';
import { toCoverageJson } from '../../domain/coverage-json.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import { type CoverageReport, readCoverage } from '../../domain/read-coverage.ts';
import { openProducts } from '../../store/products/products.ts';
import { openStoreReader } from '../../store/store.ts';
import { createClosers } from '../closers.ts';
import type { Io } from '../io.ts';
import { neverRegistered, unknownSubscription } from '../reconcile/unknown-subscription.ts';
import type { TimeArgument } from '../time-argument.ts';
import { writeForeign } from '../write-out.ts';
import { printCoverage } from './print-coverage.ts';

export interface CoverageFlags {
  since?: TimeArgument;
  until?: TimeArgument;
  subscription?: string;
  json?: true;
}

const weekUs = 7 * 86_400_000_000;

/** Rejects with `differences` when something is missing. */
export async function showCoverage(io: Io, flags: CoverageFlags): Promise<void> {
  const { dataDir, comparisonOff } = readCoverageConfig(io);
  const { since, until, subscription } = flags;
  // By the moment at which the words were read: 0h would else be some milliseconds.
  const nowUs = since?.readAtUs ?? io.nowUs();
  const sinceUs = since?.us ?? nowUs - weekUs;
  const untilUs = Math.min(until?.us ?? nowUs, nowUs);
  if (sinceUs >= untilUs) {
    throw new AppError(
      'usage',
      'There is no hour to show: --since must lie before --until and now (UTC).',
    );
  }
  const closers = createClosers();
  try {
    const store = openStoreReader(dataDir);
    closers.add(() => store.close());
    const products = openProducts(dataDir);
    closers.add(() => products.close());
    const question = { sinceUs, untilUs, subscription, nowUs };
    const parts = { completeness: store.completeness, products };
    const report = await readCoverage(parts, question, io.signal);
    if (report.subscriptions.length === 0)
      throw await nothingToShow(store.completeness, subscription);
    const document = toCoverageJson(report, comparisonOff);
    if (flags.json) await writeForeign(io.stdout, `${JSON.stringify(document, null, 2)}\n`);
    else await printCoverage(io, report, { comparisonOff, nowUs });
    refuseMissing(report);
  } finally {
    await closers.closeAll();
  }
}

async function nothingToShow(
  completeness: Pick<CompletenessReader, 'definitions'>,
  subscription: string | undefined,
): Promise<AppError> {
  const definitions = await completeness.definitions();
  const known = [...new Set(definitions.map((one) => one.subscription))];
  if (known.length === 0) return neverRegistered('then `earshot coverage` shows what came of it');
  if (subscription !== undefined && !known.includes(subscription)) {
    return unknownSubscription([subscription], known);
  }
  const what =
    subscription === undefined
      ? 'No subscription was registered in this data directory at that time.'
      : `There was no subscription ${subscription} in this data directory at that time.`;
  const advice = '`earshot subscriptions history` shows what was when.';
  return new AppError('usage', what, { advice });
}

function refuseMissing({ subscriptions }: CoverageReport): void {
  const missing = subscriptions.reduce((sum, one) => sum + one.missing, 0);
  if (missing === 0) return;
  const events = missing === 1 ? '1 event is' : `${missing.toLocaleString('en-US')} events are`;
  const gaps = subscriptions.flatMap(({ hours }) => hours.filter((hour) => hour.missing > 0));
  const first = formatDateUs(Math.min(...gaps.map(({ hourUs }) => hourUs))).slice(0, 16);
  throw new AppError('differences', `${events} missing.`, {
    advice: `\`earshot reconcile --since ${first}Z\` fetches ${missing === 1 ? 'it' : 'them'}.`,
  });
}
