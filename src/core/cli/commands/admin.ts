/** `earshot admin`: commands that are rarely needed. */

import { indexCommand } from '../../../features/products/index-command.ts';
import { logCommand } from '../../../features/shared-log/command.ts';
import { healthCommand } from '../../../features/status/health-command.ts';
import { defineGroup } from '../command.ts';
import { completionCommand } from './completion.ts';
import { configCommand } from './config.ts';

export const adminCommand = defineGroup('admin', {
  description: 'Check the settings, the listener, the product index and the shared log.',
  help: `Examples:
  $ earshot admin config             print the settings and their problems
  $ earshot admin index              print the state of the product index
  $ earshot admin health             check the running receiver
  $ earshot admin completion bash    print the completion script of a shell`,
  commands: [configCommand, indexCommand, logCommand, healthCommand, completionCommand],
});
