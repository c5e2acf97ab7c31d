/** `earshot subscriptions`: looks at the account's subscriptions, and changes single ones of ours. */
import { Command } from 'commander';
import type { Ours } from '../../admin/direct-change.ts';
import { isAppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import { confirm } from '../confirm.ts';
import type { Io } from '../io.ts';
import { yesOption } from '../shared-flags.ts';
import { withAccount } from '../with-account.ts';
import { historyCommand } from './subscriptions-history.ts';
import { listCommand, showCommand } from './subscriptions-list.ts';

export function subscriptionsCommand(io: Io): Command {
  return new Command('subscriptions')
    .description('Look at the subscriptions of the account; pause, resume, cancel, delete ours.')
    .addHelpText(
      'after',
      `
Examples:
  $ earshot subscriptions
  $ earshot subscriptions show default
  $ earshot subscriptions pause default
  $ earshot subscriptions history`,
    )
    .addCommand(listCommand(io), { isDefault: true })
    .addCommand(showCommand(io))
    .addCommand(pauseCommand(io))
    .addCommand(resumeCommand(io))
    .addCommand(removeCommand(io, 'cancel'))
    .addCommand(removeCommand(io, 'delete'))
    .addCommand(historyCommand(io));
}

function pauseCommand(io: Io): Command {
  return new Command('pause')
    .description(
      'Pause one of ours. What happens meanwhile is not sent later; the gap is recorded.',
    )
    .argument('<name or id>')
    .addHelpText(
      'after',
      '\nMaintenance leaves it paused until it is resumed.\n\nExample:\n  $ earshot subscriptions pause default',
    )
    .action((nameOrId: string) =>
      withAccount(io, {}, async ({ world }) => {
        const { findOurs, pauseByCommand } = await import('../../admin/direct-change.ts');
        const ours = await findOurs(nameOrId, world);
        if (ours.current.status === 'paused' && ours.registration?.heldBy === 'command') {
          return tell(io, `${ours.name} is paused already.`);
        }
        await pauseByCommand(ours, world);
        tell(io, `${ours.name} is paused.`);
      }),
    );
}

function resumeCommand(io: Io): Command {
  return new Command('resume')
    .description('Resume one of ours, and put it back under maintenance.')
    .argument('<name or id>')
    .addHelpText('after', '\nExample:\n  $ earshot subscriptions resume default')
    .action((nameOrId: string) =>
      withAccount(io, {}, async ({ world }) => {
        const { findOurs, resumeByCommand } = await import('../../admin/direct-change.ts');
        const ours = await findOurs(nameOrId, world);
        if (ours.current.status === 'running' && ours.registration?.heldBy === null) {
          return tell(io, `${ours.name} is running already.`);
        }
        await resumeByCommand(ours, world);
        tell(io, `${ours.name} is running.`);
      }),
    );
}

function removeCommand(io: Io, how: 'cancel' | 'delete'): Command {
  const request = { cancel: 'PATCH to cancelled', delete: 'DELETE' }[how];
  return new Command(how)
    .description(`Take one of ours out of the account for good (${request}).`)
    .argument('<name or id>')
    .addOption(yesOption())
    .addHelpText(
      'after',
      `\nWhat was received stays here. With an earshot.config.ts that names it, \`register\` makes it anew.\n\nExample:\n  $ earshot subscriptions ${how} default`,
    )
    .action((nameOrId: string, { yes }: { yes?: true }) =>
      withAccount(io, {}, async ({ world }) => {
        const { findOurs, forgetGone, removeByCommand } = await import(
          '../../admin/direct-change.ts'
        );
        const ours = await findOurs(nameOrId, world).catch(async (error: unknown) => {
          if (!isAppError(error, 'not_found') || !(await forgetGone(nameOrId, world))) throw error;
          return null;
        });
        if (ours === null) return tell(io, `${nameOrId} was gone already, and is forgotten.`);
        io.stderr.write(`This goes for good, and sends nothing any more:\n${description(ours)}\n`);
        await confirm(io, how === 'cancel' ? 'Cancel it?' : 'Delete it?', { yes });
        await removeByCommand(ours, how, world);
        tell(io, `${ours.name} is gone from the account.`);
      }),
    );
}

function description({ name, current }: Ours): string {
  return [
    `  name    ${name}`,
    `  id      ${printable(current.id)}`,
    `  status  ${printable(current.status)}`,
    `  events  ${printable(current.events.join(', '))}`,
    `  filter  ${current.filter === '' ? '(none: every product)' : printable(current.filter)}`,
  ].join('\n');
}

function tell(io: Io, text: string): void {
  io.stderr.write(`${text}\n`);
}
