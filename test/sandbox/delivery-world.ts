/** An account whose subscriptions deliver to an endpoint of the test. */
import { expect, vi } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';
import { startAccountWorld } from './account-world.ts';
import { type Answer, startTrustedEndpoint } from './recording-endpoint.ts';

/** Each subscription has a path of its own there; failed attempts are repeated at once unless told. */
export async function startDeliveryWorld(options: Partial<SandboxOptions> = {}, answer?: Answer) {
  const { url, requests, trustedCaPems } = await startTrustedEndpoint(answer);
  const world = await startAccountWorld({ trustedCaPems, retryDelaysMs: [0, 0, 0], ...options });
  const subscribe = async (name: string, changes: Record<string, unknown> = {}) => {
    const NotificationEndpoint = new URL(`/notifications/${name}`, url).href;
    const NotificationEpUsername = `user-${name}`;
    const { json } = await world.create({
      NotificationEndpoint,
      NotificationEpUsername,
      FilterParam: '',
      ...changes,
    });
    return json.Id as string;
  };
  /** Publishes, and waits until everything is delivered or lost. */
  const publishAll = async (count: number, event?: string) => {
    const answer = await world.publish(count, event);
    expect(answer.json).toEqual({ published: count });
    await vi.waitFor(() => expect(world.sandbox.totals().pending).toBe(0), 10_000);
  };
  const sentTo = (name: string) => requests.filter(({ path }) => path?.endsWith(`/${name}`));
  return { ...world, requests, subscribe, publishAll, sentTo };
}
