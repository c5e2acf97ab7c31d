/** The requests that remove a difference: create, edit, delete. */

import { AppError, isAppError } from '../core/terms/app-error.ts';
import { endpointFor } from '../core/terms/subscription.ts';
import type { HistoryAction, Registration } from './account.ts';
import { type AccountContext, nowRunning } from './account-context.ts';
import type { Difference, Request } from './differences.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

type EditRequest = Extract<Request, { kind: 'edit' }>;

/** Result of a request. */
interface Done {
  /** Fields of the registration that it changes. */
  fields?: Partial<Registration>;
  id: string | null;
  action: HistoryAction;
  what: string;
  /** Time of the history entry; now by default. */
  atUs?: number;
}

/** The context of requests; `digest` is that of the credentials. */
interface Sender {
  context: AccountContext;
  digest: string;
}

/** Sends the request. Rejects as the client and the queues do. */
export async function sendRequest(
  difference: Difference,
  request: Request,
  sender: Sender,
): Promise<Done> {
  if (request.kind === 'create') return create(request, difference, sender);
  if (request.kind === 'edit') return edit(request, difference, sender);
  if (request.kind === 'delete') return remove(request.current, difference, sender);
  const { desired, current } = difference;
  if (desired === null) return { id: null, action: 'removed', what: 'no longer configured' };
  const fields = { unfinished: false };
  return { fields, id: current?.id ?? null, action: 'adopted', what: 'no change needed' };
}

async function create(
  { desired, status }: Extract<Request, { kind: 'create' }>,
  { old, differs }: Difference,
  { context, digest }: Sender,
): Promise<Done> {
  const { client, credentials, publicUrl, nowUs } = context;
  const { events, filter } = desired;
  const endpoint = endpointFor(publicUrl, desired);
  const address = endpoint === null ? null : { endpoint, credentials };
  // Pushes may come before the answer, and events are expected from here.
  const atUs = nowUs();
  const fresh = await client.create({ events, filter, status, address });
  if (fresh === null) {
    throw new AppError('unavailable', 'The response to the create request could not be read.');
  }
  const fields = {
    subscriptionId: fresh.id,
    credentialsDigest: address === null ? null : digest,
    notifiedAtUs: nowUs(),
    ...(status === 'running' ? nowRunning(atUs) : {}),
  };
  const replaces = `replaces ${old.map(({ id }) => id).join(', ')}: changed ${differs.join(' and ')}`;
  const what = old.length > 0 ? replaces : `status ${status}`;
  return { fields, id: fresh.id, action: 'created', what, atUs };
}

async function edit(
  { current: { id, ...current }, edit: { status, endpoint, credentials } }: EditRequest,
  { name, adopted }: Difference,
  { context, digest }: Sender,
): Promise<Done> {
  // The catalogue may refuse to read the queue of a paused subscription.
  if (status === 'paused') await drain(name, { id, ...current }, context);
  const beganAtUs = context.nowUs();
  await context.client.edit(id, {
    ...(status === undefined ? {} : { status }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials: context.credentials }),
  });
  const fields = {
    ...(credentials === undefined ? {} : { credentialsDigest: digest }),
    ...(status === 'running' ? nowRunning(beganAtUs) : {}),
  };
  if (status !== undefined) {
    const action = status === 'running' ? 'resumed' : 'paused';
    return { fields, id, action, what: `now ${status}` };
  }
  const what = [
    ...(endpoint === undefined ? [] : [`endpoint ${endpoint}`]),
    ...(credentials === undefined ? [] : ['new credentials']),
  ];
  return { fields, id, action: adopted ? 'adopted' : 'changed', what: what.join(', ') };
}

/** Deletes a subscription that is no longer configured or was replaced, or that a full account has no space for. */
async function remove(
  old: CatalogueSubscription,
  { name, desired, current, differs }: Difference,
  { context }: Sender,
): Promise<Done> {
  await drain(name, old, context);
  await context.client.delete(old.id);
  const { id } = old;
  if (desired === null) return { id, action: 'deleted', what: 'no longer configured' };
  const what = differs.length === 0 ? 'duplicate' : `changed ${differs.join(' and ')}`;
  if (current !== null) return { id, action: 'replaced', what };
  const fields = { subscriptionId: null };
  return {
    fields,
    id,
    action: 'replaced',
    what: `${what}; the account is full, so there is a gap`,
  };
}

/**
 * Stores and acknowledges what is left in the queue of a pull subscription, before it is deleted or paused. The
 * catalogue may refuse to read the queue of a paused one: the gap of its pause is recorded.
 */
export async function drain(
  name: string,
  { id, type, status }: CatalogueSubscription,
  { drain: read }: Pick<AccountContext, 'drain'>,
): Promise<void> {
  if (type !== 'pull') return;
  await read({ name, id }).catch((error: unknown) => {
    const isRefused = status !== 'running' && isAppError(error, 'invalid');
    if (!isRefused && !isAppError(error, 'not_found')) throw error;
  });
}
