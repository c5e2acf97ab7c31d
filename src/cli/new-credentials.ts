/** Makes endpoint credentials. */
import type { EndpointCredentials } from '../admin/service/subscription-client.ts';
import type { Io } from './io.ts';

/** A pair that nobody has guessed or used: 256 random bits, no colon. */
export function newCredentials({ newSecret }: Pick<Io, 'newSecret'>): EndpointCredentials {
  return { username: `earshot-${newSecret().slice(0, 8)}`, password: newSecret() };
}
