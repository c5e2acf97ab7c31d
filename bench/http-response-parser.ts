/** Reads HTTP/1.1 answers from a byte stream: status line, Content-Length, and nothing else. */

/** What the load generator needs to know of an answer. */
export interface ResponseHead {
  readonly status: number;
  /** True when the server will close the connection after this answer. */
  readonly closes: boolean;
}

/** The parser of one connection; after an error it is of no more use. */
export interface ResponseParser {
  /**
   * Takes the next bytes. Returns the head once its whole body has arrived, else undefined.
   * One request is in flight at a time, so bytes after the body are an error, and so is an answer
   * with neither Content-Length nor a status that has no body.
   */
  push(chunk: Buffer): ResponseHead | undefined;
}

const headEndMark = '\r\n\r\n';
const contentLengthPattern = /\r\ncontent-length: *(\d+)/i;
const closePattern = /\r\nconnection: *close/i;

/** Creates the parser of one connection. */
export function createResponseParser(): ResponseParser {
  let pending: Buffer | undefined;
  return {
    push(chunk) {
      const bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
      const headEnd = bytes.indexOf(headEndMark);
      if (headEnd === -1) {
        pending = bytes;
        return undefined;
      }
      const head = bytes.toString('latin1', 0, headEnd);
      const status = statusOf(head);
      const totalBytes = headEnd + headEndMark.length + bodyBytesOf(head, status);
      if (bytes.length > totalBytes) throw new Error('more bytes than one answer');
      const complete = bytes.length === totalBytes;
      pending = complete ? undefined : bytes;
      return complete ? { status, closes: closePattern.test(head) } : undefined;
    },
  };
}

function statusOf(head: string): number {
  const status = Number(head.slice(9, 12));
  if (!head.startsWith('HTTP/1.1 ') || !Number.isInteger(status)) {
    throw new Error(`not an HTTP/1.1 status line: ${head.slice(0, 40)}`);
  }
  return status;
}

function bodyBytesOf(head: string, status: number): number {
  if (status === 204 || status === 304) return 0;
  const declared = contentLengthPattern.exec(head)?.[1];
  if (declared === undefined) throw new Error('answer without Content-Length');
  return Number(declared);
}
