/** The flags of `earshot setup`, and how its questions read an answer as a flag is read. */
import type { ConditionFlags } from '../products/product-flags.ts';
import type { SubscriptionFlags } from '../subscription-flags.ts';

export interface SetupFlags extends SubscriptionFlags {
  host?: string;
  tls?: string;
  cert?: string;
  key?: string;
  listen?: string;
  trustedProxies?: string;
  email?: string;
  agree?: true;
  accountUsername?: string;
  accountPasswordFile?: string;
  accountTotpFile?: string;
  sandbox?: true;
  dir?: string;
  dryRun?: true;
  force?: true;
  yes?: true;
  stay: boolean;
}

/** Reads a text as the flag of that name does. Throws commander's InvalidArgumentError. */
export type ReadFlag = (flag: keyof ConditionFlags | 'subscription', text: string) => unknown;
