/** A receiver as `start` composes it, with both listeners, an adjustable clock, and its metrics. */

import { rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { serve } from '../../src/receiver/serve.ts';
import { readScrape } from '../features/metrics/metric-samples.ts';
import { testIo } from '../helpers/fake-io.ts';
import { writeKeyPair } from '../helpers/key-pair.ts';
import { silentLog } from '../helpers/recording-log.ts';
import { sendRequest } from '../helpers/send-request.ts';
import { credentials } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { loopback, serveConfig } from './serve-config.ts';

/** Opens the receiver; it is closed when the test has finished. */
export async function openServed({ index = false } = {}) {
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'data');
  const { caPem, files } = await writeKeyPair(folder);
  let aheadUs = 0;
  const nowUs = () => Date.now() * 1_000 + aheadUs;
  const config = serveConfig({
    ...{ dataDir, index, tls: { kind: 'files', ...files } },
    credentials: { source: 'variables', pairs: [credentials] },
    console: { listen: loopback, password: undefined, catalogueUrl: 'https://catalogue.test' },
  });
  const receiver = await serve(config, silentLog, testIo({ nowUs, random: Math.random }));
  onTestFinished(() => receiver.close());
  const agent = new Agent({ ca: caPem, keepAlive: true });
  onTestFinished(() => agent.destroy());
  const auth = `${credentials.username}:${credentials.password}`;
  const post = async (path: string, body: string, login = auth): Promise<number> => {
    const url = new URL(path, receiver.url ?? '');
    return (await sendRequest({ url, method: 'POST', agent, auth: login }, body)).status;
  };
  const ask = async (path: string) => {
    const answer = await fetch(new URL(path, receiver.consoleUrl ?? ''));
    return { status: answer.status, text: await answer.text() };
  };
  return {
    ...receiver,
    /** Root certificate of the authority, PEM. */
    ca: caPem,
    /** Replaces the data directory by a file, so that nothing can be written. */
    breakStore: () => {
      rmSync(dataDir, { recursive: true });
      writeFileSync(dataDir, '');
    },
    repairStore: () => rmSync(dataDir),
    nowUs,
    passUs: (us: number) => {
      aheadUs += us;
    },
    /** Resolves with the status. */
    post,
    ask,
    scrape: async () => readScrape((await ask('/metrics')).text),
  };
}
