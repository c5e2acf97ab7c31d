/** `earshot demo`: runs a sandbox catalogue and a receiver on one machine. */
import { defineCommand } from '../command.ts';
import type { DemoFlags } from '../demo/run-demo.ts';
import { wholeNumber } from '../flags.ts';

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
      .option('--records <file>', 'JSONL file with product records instead of generated ones')
      .option('--faults', 'injected faults (duplicates, lost answers, drift, lost notifications)')
      .option('--seed <number>', 'seed of the generated products and faults', wholeNumber(), 1),
  help: `Runs on this machine without an account, in a temporary folder that is deleted at the end. The
subscription has a filter with a collection and an area. Use any command on the data of the demo:
paste the printed line into another terminal. With --faults, \`earshot reconcile\` recovers the lost
notifications at the end (after --products, or Ctrl-C).

--once also registers a subscription without a filter, and prints its counts as the last line:
{"published","delivered","stored","duplicates","quarantined","summaries"}; with --faults also
"recovered". summaries counts both subscriptions, maximum 250.

Exit codes: 0 done, 1 the counts of sandbox and store differ, or failed, 2 wrong usage.

Examples:
  $ earshot demo                               until Ctrl-C
  $ earshot demo --once                        200 products, then the counts
  $ earshot demo --once --products 500 --faults
  $ earshot demo --once --records products.jsonl`,
  // Loaded on demand: the demo imports most modules, and `--help` does not need them.
  run: async (io, flags: DemoFlags) => (await import('../demo/run-demo.ts')).runDemo(io, flags),
});
