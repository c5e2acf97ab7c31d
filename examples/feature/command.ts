/** `earshot mark`: marks a product, and prints all marked ones. */
import { defineCommand } from '../../src/core/cli/command.ts';
import { writeJson } from '../../src/core/cli/output.ts';

export const markCommand = defineCommand('mark', {
  description: 'Mark a product, and print the marked products as JSON.',
  flags: (command) => command.argument('<id>', 'Id of the product'),
  needs: ['store'],
  help: `Examples:
  $ earshot mark 3f5b1c66-3b0e-4d3b-9f6c-6f5f0d4f6f11    mark a product`,
  run: async ({ store, nowUs, stdout }, _flags: object, id: string) => {
    await store.marks.add(id, nowUs());
    await writeJson(stdout, await store.marks.list());
  },
});
