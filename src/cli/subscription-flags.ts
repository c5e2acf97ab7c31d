/** The flags that describe one subscription: its name, its events and its filter. */
import { type Command, InvalidArgumentError } from 'commander';
import {
  defaultSubscriptionName,
  type SubscriptionEvent,
  sortedEvents,
  subscriptionEvents,
  subscriptionNamePattern,
} from '../domain/subscription.ts';
import { addConditionFlags, type ConditionFlags } from './products/product-flags.ts';

export interface SubscriptionFlags extends ConditionFlags {
  subscription?: string;
  event?: SubscriptionEvent[];
  filter?: string;
}

/** Adds the flags to a command. */
export function addSubscriptionFlags(command: Command): Command {
  command
    .option(
      '--subscription <name>',
      `its name, the last part of its URL path (default: ${defaultSubscriptionName})`,
      subscriptionName,
    )
    .option('--event <names>', 'created, modified, deleted; several with commas', eventNames);
  return addConditionFlags(command).option(
    '--filter <expression>',
    'a $filter expression; joined to the other flags by "and"',
  );
}

function subscriptionName(text: string): string {
  if (subscriptionNamePattern.test(text)) return text;
  throw new InvalidArgumentError(
    'Use lower-case letters, digits and dashes, 63 characters at most, such as alps-2.',
  );
}

function eventNames(text: string): SubscriptionEvent[] {
  const names = text.split(',').map((name) => name.trim().toLowerCase());
  const isKnown = (name: string): name is SubscriptionEvent =>
    subscriptionEvents.some((known) => known === name);
  if (!names.every(isKnown)) {
    throw new InvalidArgumentError(`Use ${subscriptionEvents.join(', ')}; several with commas.`);
  }
  return sortedEvents(names);
}
