/** `earshot admin`: commands that are rarely needed. */

import { defineGroup } from '../command.ts';

export const adminCommand = defineGroup('admin', {
  description: 'Check the settings, the listener, the product index and the shared log.',
  help: `Examples:
  $ earshot admin config             print the settings and their problems
  $ earshot admin index              print the state of the product index
  $ earshot admin health             check the running receiver
  $ earshot admin completion bash    print the completion script of a shell`,
  commands: [],
});
