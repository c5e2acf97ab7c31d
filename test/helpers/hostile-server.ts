/** A server on loopback that answers with prepared bytes. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { startTcpServer } from './tcp-server.ts';

/** Returns the bytes to send after this data; `flood` is followed by `repeated` without end, by default by zeros. */
type Answer = (data: Buffer) => Uint8Array | { flood: Uint8Array; repeated?: Buffer } | null;

/** `createAnswer` is called for each connection. The greeting is sent at once. Returns the port. */
export async function startHostileServer(
  createAnswer: () => Answer,
  greeting = '',
): Promise<number> {
  const { port } = await startTcpServer((socket) => {
    socket.write(greeting);
    const answer = createAnswer();
    socket.on('data', (data) => {
      const bytes = answer(data);
      if (bytes === null) return;
      if (bytes instanceof Uint8Array) return void socket.write(bytes);
      socket.write(bytes.flood);
      const { repeated = Buffer.alloc(1) } = bytes;
      const many = Buffer.concat(Array<Buffer>(2 ** 18).fill(repeated));
      const flood = () => {
        while (!socket.destroyed && socket.write(many));
      };
      socket.on('drain', flood);
      flood();
    });
  });
  return port;
}

/** Answers the first data of each connection, and nothing else. */
export function answerOnce(bytes: ReturnType<Answer>): () => Answer {
  return () => {
    let next: ReturnType<Answer> = bytes;
    return () => {
      const answer = next;
      next = null;
      return answer;
    };
  };
}

/**
 * Measures how long this thread does not react, until the function is called. Returns the median in milliseconds: higher
 * percentiles depend on the load of the machine, and a thread that is blocked does not end the test.
 */
export function measureDelay(): () => number {
  const histogram = monitorEventLoopDelay({ resolution: 5 });
  histogram.enable();
  return () => {
    histogram.disable();
    return histogram.percentile(50) / 1e6;
  };
}
