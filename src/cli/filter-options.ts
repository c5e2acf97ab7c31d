/** The options that choose rows of the log, shared by the commands that read it. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type NotificationQuery, namePatternMax } from '../domain/ports.ts';
import { subscriptionEvents } from '../domain/subscription.ts';
import { printable } from '../domain/text.ts';
import { readTime, sinceOption, untilOption } from './flags.ts';
import type { Io } from './io.ts';
import { painter } from './output.ts';

export interface FilterFlags {
  ackId?: string;
  productId?: string;
  name?: string;
  event?: string[];
  subscription?: string;
  source?: string;
  since?: number;
  until?: number;
  time: 'received' | 'notification';
}

/** Adds the options to a command. */
export function addFilterOptions(command: Command, io: Io): Command {
  const time = readTime(io);
  return command
    .option('--ack-id <id>', 'the notification with this AckId')
    .option('--product-id <id>', 'notifications of this product')
    .option('--name <pattern>', 'product name; * stands for any text, ? for one character', pattern)
    .option('--event <names>', 'created, modified, deleted; several with commas', splitNames)
    .option('--subscription <name>', 'the name in the URL path')
    .addOption(new Option('--source <source>', 'how it came').choices(['push', 'reconcile']))
    .addOption(sinceOption(time, 'received'))
    .addOption(untilOption(time, 'received'))
    .addOption(
      new Option('--time <which>', 'which time --since and --until compare')
        .choices(['received', 'notification'])
        .default('received'),
    );
}

/** The flags as a query of the log. */
export function toQuery(flags: FilterFlags): NotificationQuery {
  const { ackId, productId, name, event: events, subscription, source, time } = flags;
  const { since: sinceUs, until: untilUs } = flags;
  return { ackId, productId, name, events, subscription, source, time, sinceUs, untilUs };
}

/** A name may be a slip, or an event that the catalogue has had only since: it is looked for all the same. */
export function warnOfUnknownEvents(
  { event = [] }: Pick<FilterFlags, 'event'>,
  io: Pick<Io, 'env' | 'stderr'>,
): void {
  const known: readonly string[] = subscriptionEvents;
  for (const name of event.filter((one) => !known.includes(one))) {
    const label = painter(io, io.stderr)('yellow', `No event "${printable(name)}" is documented`);
    io.stderr.write(`${label}; the catalogue's are ${known.join(', ')}.\n`);
  }
}

function splitNames(text: string): string[] {
  const names = text.split(',').map((name) => name.trim().toLowerCase());
  if (names.includes('')) throw new InvalidArgumentError('Use one name, or several with commas.');
  return names;
}

function pattern(text: string): string {
  if (text.length <= namePatternMax) return text;
  throw new InvalidArgumentError(`Use at most ${namePatternMax} characters.`);
}
