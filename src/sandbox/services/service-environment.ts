/** What the apps of the account's services find in their context. */
import type { HttpBindings } from '@hono/node-server';
import type { OpenRequest } from './request-log.ts';

export interface ServiceEnvironment {
  /** Node's own request and answer, to cut a connection. */
  readonly Bindings: HttpBindings;
  readonly Variables: {
    /** GUID of this request, told to the client. */
    requestId: string;
    /** Its entry in the log. */
    logged: OpenRequest;
  };
}
