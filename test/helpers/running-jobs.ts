/** Background jobs as a receiver gets them, from what its status shows. */

import type { DeliveryState } from '../../src/features/sinks/terms.ts';
import type { JobContext, RunningJob } from '../../src/receiver/slots.ts';

export interface ShownJobs {
  deliveryState: () => DeliveryState;
}

export function runningJobs({ deliveryState }: ShownJobs): Pick<JobContext, 'version' | 'jobs'> {
  const job = (state: unknown): RunningJob => ({ state, stop: async () => undefined });
  const jobs = new Map([['sinks', job(deliveryState)]]);
  return { version: '1.0.0', jobs };
}
