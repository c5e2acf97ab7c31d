/** A receiver that holds its lock, and whose private listener gives one answer. */
import { onTestFinished } from 'vitest';
import { markServed } from '../../../src/receiver/running-receiver.ts';
import { type Answer, startServer } from '../../core/http/answering-server.ts';
import { nowUs } from '../../helpers/fake-io.ts';
import { silentLog } from '../../helpers/recording-log.ts';

/** Marks the data directory until the test has finished. Returns the URL; null without a private listener. */
export async function markReceiver(dataDir: string, answer: Answer | null): Promise<string | null> {
  const mark = await markServed(dataDir, silentLog);
  onTestFinished(() => mark.stop());
  const consoleUrl = answer === null ? null : (await startServer([answer])).url;
  const startedAtUs = nowUs - 12 * 3_600_000_000;
  const listen = { host: '0.0.0.0', port: 8443 };
  await mark.describe({ pid: 4711, startedAtUs, publicUrl: null, listen, consoleUrl });
  return consoleUrl;
}
