/** A language model for the benchmark: answers every completion after a second, with one text. */
import { createServer } from 'node:http';

/** A short text of a hosted model takes some seconds. */
const answerDelayMs = 1_000;
/** States nothing that could be checked, so that it is kept as it is. */
const content = 'This product has arrived.';

/** Starts it on PORT of loopback, as plain HTTP. */
export function startModelServer(env: NodeJS.ProcessEnv): void {
  const body = JSON.stringify({ choices: [{ message: { role: 'assistant', content } }] });
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      setTimeout(() => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(body);
      }, answerDelayMs);
    });
  });
  server.listen(Number(env.PORT), '127.0.0.1');
}

if (process.argv[1] === import.meta.filename) startModelServer(process.env);
