/** A web service for the benchmark's sinks: takes what is posted to /take at once, and never answers elsewhere. */
import { createServer } from 'node:http';

/** Starts it on PORT of loopback, as plain HTTP. */
export function startHookServer(env: NodeJS.ProcessEnv): void {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      if (request.url === '/take') response.writeHead(204).end();
    });
  });
  server.listen(Number(env.PORT), '127.0.0.1');
}

if (process.argv[1] === import.meta.filename) startHookServer(process.env);
