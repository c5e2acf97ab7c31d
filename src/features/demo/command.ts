/** `earshot demo`: runs a sandbox catalogue and a receiver on one machine. */
import { defineCommand } from '../../core/cli/command.ts';
import { pullFlagText, wholeNumber } from '../../core/cli/flags.ts';
import type { DemoFlags } from './open-demo.ts';

export const demoCommand = defineCommand('demo', {
  description:
    'Run a demo: a sandbox catalogue that pushes notifications to a receiver over HTTPS.',
  flags: (command) =>
    command
      .option('--once', 'publish all products at once, print one JSON line, and exit')
      .option(
        '--products <number>',
        'number of products (default: 200 with --once, otherwise unlimited)',
        wholeNumber(1),
      )
      .option('--records <file>', 'JSONL file with product records (default: generated records)')
      .option(
        '--faults',
        'inject faults (duplicates, lost answers, unusual formats, lost notifications)',
      )
      .option('--pull', pullFlagText)
      .option('--seed <number>', 'seed of the generated products and faults', wholeNumber(), 1),
  help: `The demo needs no account and runs in a temporary folder on this machine. The folder is deleted at
the end. The subscriptions have a filter with a collection and an area. The log begins with a
simulated past day, in which the notifications of one hour are missing. 30 seconds after the start,
the receiver compares its log with the catalogue and fetches them. The demo prints the address of
its web page and its folder, in which other commands use the data of the demo, and runs until Ctrl-C
or until all products are published. With --faults, the demo runs \`earshot reconcile\` at the end
to recover the lost notifications.

With --once, the demo has no past day, and a subscription without a filter. The last line of output
has its counts: {"published","delivered","stored","duplicates","quarantined","summaries"}. With
--faults, the line also has "recovered". With --records, there is no past day either.

With --pull, the receiver reads the queues of pull subscriptions. --faults then injects faults of
the queue (429, lost answers, repeated pages), and no notification is lost.

Exit codes: 0 done, 1 failed or the counts of sandbox and store differ, 2 wrong usage.

Examples:
  $ earshot demo                               run until Ctrl-C
  $ earshot demo --once                        publish 200 products, then print the counts
  $ earshot demo --once --products 500 --faults     publish 500 products with faults
  $ earshot demo --once --records products.jsonl    publish your own records
  $ earshot demo --pull                        without a certificate`,
  // Loaded on demand: the demo imports most modules, and `--help` does not need them.
  run: async (io, flags: DemoFlags) =>
    (await import('./run-demo.ts')).runDemo(io, flags, io.version),
});
