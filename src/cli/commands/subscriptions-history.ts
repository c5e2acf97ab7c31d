/** `earshot subscriptions history`: what was done to our subscriptions, by whom, and why. */
import { Command } from 'commander';
import { dataSections, loadConfig } from '../../config/config.ts';
import type { HistoryEntry } from '../../domain/administration.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import { openStoreReader } from '../../store/store.ts';
import type { Io } from '../io.ts';
import { limitOption } from '../shared-flags.ts';
import { type Column, printTable } from '../table.ts';
import { writeForeign } from '../write-out.ts';

export function historyCommand(io: Io): Command {
  return new Command('history')
    .description('Tell what was done to our subscriptions and why, newest first.')
    .argument('[name]', 'only this one')
    .addOption(limitOption().default(100))
    .option('--json', 'as JSON: at subscription subscriptionId action actor reason')
    .addHelpText('after', '\nExample:\n  $ earshot subscriptions history default --limit 20')
    .action(async (name: string | undefined, flags: { limit: number; json?: true }) => {
      const store = openStoreReader(loadConfig(io, dataSections).dataDir);
      try {
        const { limit, json } = flags;
        const asked = name === undefined ? { limit } : { subscription: name, limit };
        const entries = await store.administration.history(asked);
        if (json) {
          await writeForeign(io.stdout, `${JSON.stringify(entries.map(toOutput), null, 2)}\n`);
        } else if ((await printTable(io.stdout, columns, entries)) === 0) {
          io.stderr.write(`Nothing has been done${name === undefined ? '' : ` to ${name}`} yet.\n`);
        }
      } finally {
        await store.close();
      }
    });
}

const columns: readonly Column<HistoryEntry>[] = [
  {
    title: 'time (UTC)',
    value: ({ atUs }) => formatDateUs(atUs).slice(0, 19).replace('T', ' '),
  },
  { title: 'subscription', value: ({ subscription }) => subscription },
  { title: 'action', value: ({ action }) => action },
  { title: 'by', value: ({ actor }) => actor },
  { title: 'why', value: ({ reason }) => reason, flexible: true },
];

function toOutput({ atUs, ...rest }: HistoryEntry) {
  return { at: formatDateUs(atUs), ...rest };
}
