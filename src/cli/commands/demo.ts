/** `earshot demo`: the whole thing on one machine, over real HTTPS, leaving nothing behind. */
import { defineCommand } from '../command.ts';
import type { DemoFlags } from '../demo/run-demo.ts';
import { wholeNumber } from '../flags.ts';

export const demoCommand = defineCommand('demo', {
  description: 'Watch it work: a sandbox catalogue pushes notifications to a receiver over HTTPS.',
  flags: (command) =>
    command
      .option('--once', 'publish quickly, count, print one JSON line, and end')
      .option('--products <number>', 'how many products (with --once: 200)', wholeNumber(1))
      .option('--records <file>', 'publish these product records (JSONL) instead of made-up ones')
      .option('--faults', 'with duplicates, lost answers, odd shapes and lost notifications')
      .option(
        '--seed <number>',
        'the same seed brings the same products and faults',
        wholeNumber(),
        1,
      ),
  help: `Everything runs on this machine, in a temporary folder that is removed at the end. No account is
needed. The subscription has a filter, a collection and a place: only what matches arrives, and a
query by place finds it. With --once, one about everything runs beside it. While the demo runs,
every command works on its data: paste the line that it prints into another terminal. With --faults,
\`reconcile\` restores at the end what was lost (without --once: when --products are published, or at
Ctrl-C).

Last line of --once: {"published","delivered","stored","duplicates","quarantined","summaries"} of
the subscription about everything (with --faults also "recovered": those that were lost on the way
and that reconcile restored), counted from the sandbox's and the store's own records; summaries
are texts about what arrived by either of them, 250 at most. Exit code 1 when the records do not
agree, or when what the filtered one was owed is not what its filter and its place find.

Examples:
  $ earshot demo
  $ earshot demo --once --products 200
  $ earshot demo --once --products 500 --faults
  $ earshot demo --once --records products.jsonl`,
  // It loads nearly everything: not for `--help`.
  run: async (io, flags: DemoFlags) => (await import('../demo/run-demo.ts')).runDemo(io, flags),
});
