/** Remembers which requests the account's services were sent, for whoever wants to count them. */

export interface LoggedRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Null before the answer, and when the connection was cut instead. */
  readonly status: number | null;
  /** What a request for tokens asked by: `password` is a login. */
  readonly grantType?: string;
}

/** An entry whose end is not known yet; what is set here shows in the log. */
export type OpenRequest = { -readonly [Key in keyof LoggedRequest]: LoggedRequest[Key] };

export interface RequestLog {
  /** Opens an entry. */
  open(method: string, path: string): OpenRequest;
  /** Copies of the last thousand, in the order of arrival. */
  entries(): readonly LoggedRequest[];
}

const requestsMax = 1_000;

/** Creates an empty log. */
export function createRequestLog(): RequestLog {
  const requests: OpenRequest[] = [];
  return {
    open: (method, path) => {
      const request = { method, path, status: null };
      requests.push(request);
      if (requests.length > requestsMax) requests.shift();
      return request;
    },
    entries: () => requests.map((request) => ({ ...request })),
  };
}
