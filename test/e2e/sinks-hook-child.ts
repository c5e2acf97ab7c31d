/**
 * Web service of a user that records each webhook before it answers, and may be killed at any moment. It refuses
 * some webhooks, or fails, the first time, and stores which.
 */
import { existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';

const [port = '', file = ''] = process.argv.slice(2);
const log = openSync(file, 'a');
const failuresFile = `${file}.failures`;
const failed = new Set(
  existsSync(failuresFile) ? readFileSync(failuresFile, 'utf8').split('\n') : [],
);
const failures = openSync(failuresFile, 'a');

/** Returns the status of the first answer to a webhook. */
function firstAnswer(position: number): number {
  if (position % 23 === 0) return 400;
  return position % 13 === 0 ? 500 : 204;
}

createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += chunk;
  const { id, position, productId } = JSON.parse(body).data;
  const status = failed.has(id) ? 204 : firstAnswer(position);
  if (status === 204) {
    writeSync(log, `${JSON.stringify({ id, position, productId })}\n`);
  } else {
    failed.add(id);
    writeSync(failures, `${id}\n`);
  }
  setTimeout(() => response.writeHead(status).end(), 5);
}).listen(Number(port), '127.0.0.1', () => process.send?.('listening'));
