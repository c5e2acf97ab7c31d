/** Complete requests, built once and patched in place before each use. */
import { type BodyTemplate, writeIds } from './bodies.ts';
import type { LoadJob } from './load-job.ts';
import { ackIdOf, productIdOf } from './request-ids.ts';

/** Gives connections their next request. */
export interface RequestSource {
  /** The number of the next request of this run, from 0. */
  nextSequence(): number;
  /** The bytes of a request. They are reused, but only by the same connection's later requests. */
  request(connection: number, sequence: number): Buffer;
}

interface PreparedRequest {
  readonly bytes: Buffer;
  readonly bodyStart: number;
  readonly template: BodyTemplate;
}

/**
 * Prepares one request per template and deals them out to the connections, so that no two
 * connections ever share a buffer.
 *
 * @param templates at least as many as there are connections.
 */
export function createRequestSource(
  job: LoadJob,
  templates: readonly BodyTemplate[],
): RequestSource {
  const hands: PreparedRequest[][] = Array.from({ length: job.connections }, () => []);
  templates.forEach((template, index) => {
    hands[index % job.connections]?.push(prepare(job, template));
  });
  let next = 0;
  return {
    nextSequence: () => next++,
    request(connection, sequence) {
      const hand = hands[connection] ?? [];
      const prepared = hand[sequence % hand.length];
      if (prepared === undefined) throw new Error(`connection ${connection} has no template`);
      writeIds(prepared.bytes, prepared.bodyStart, prepared.template, {
        ackId: ackIdOf(job.ackIdForm, job.run, sequence),
        productId: productIdOf(job.run, sequence),
      });
      return prepared.bytes;
    },
  };
}

function prepare(job: LoadJob, template: BodyTemplate): PreparedRequest {
  const credentials = Buffer.from(`${job.username}:${job.password}`).toString('base64');
  const head = [
    `POST ${job.path} HTTP/1.1`,
    `Host: ${job.host}:${job.port}`,
    `Authorization: Basic ${credentials}`,
    'Content-Type: application/json',
    `Content-Length: ${template.bytes.length}`,
    '\r\n',
  ].join('\r\n');
  const headBytes = Buffer.from(head);
  return {
    bytes: Buffer.concat([headBytes, template.bytes]),
    bodyStart: headBytes.length,
    template,
  };
}
