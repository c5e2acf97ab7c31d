/** Composes the receiver: store, certificate, listener; and takes it apart again in reverse. */
import type { ServeConfig } from '../config/read-config.ts';
import type { Logger } from '../domain/ports.ts';
import { type Listener, startListener } from '../http/listener.ts';
import { createCredentialCheck } from '../receiver/basic-auth.ts';
import { createReceiverApp } from '../receiver/receiver-app.ts';
import { openStore, type Store } from '../store/store.ts';
import { loadCertificateFiles } from '../tls/certificate-files.ts';
import { watchCertificateFiles } from '../tls/watch-certificate-files.ts';
import { createClosers } from './closers.ts';
import type { Io } from './io.ts';
import { startOutcomeSummary } from './outcome-summary.ts';

/** Time for requests in hand when the program ends. */
const graceMs = 10_000;

export interface RunningReceiver {
  /** Where the public listener is, such as `https://127.0.0.1:8443`. */
  url: string;
  store: Store;
  close(): Promise<void>;
}

/** Resolves when the receiver takes notifications; if a step fails, what was opened is closed. */
export async function serve(
  config: ServeConfig,
  log: Logger,
  io: Pick<Io, 'nowUs' | 'newId'>,
): Promise<RunningReceiver> {
  const closers = createClosers();
  const { nowUs, newId } = io;
  try {
    const files = config.certificateFiles;
    const certificate = files === null ? undefined : await loadCertificateFiles(files);
    const store = await openStore({ dataDir: config.dataDir, nowUs });
    closers.add(() => store.close());
    const summary = startOutcomeSummary(log);
    closers.add(() => summary.stop());
    const app = createReceiverApp({
      intake: store,
      checkCredentials: createCredentialCheck(config.credentials),
      log,
      nowUs,
      newRequestId: newId,
      observe: summary.observe,
    });
    const listener = await startListener({
      fetch: app.fetch,
      listen: config.listen,
      listenVariable: 'EARSHOT_LISTEN',
      keyPair: certificate,
    });
    closers.add(() => listener.close(graceMs));
    if (files !== null && certificate !== undefined) {
      const watch = watchCertificateFiles({
        files,
        current: certificate,
        onChange: ({ notAfter, ...pair }) => {
          listener.setKeyPair(pair);
          log.info({ notAfter }, 'certificate changed; serving the new one');
        },
        onProblem: (err) => {
          log.error({ err }, 'the changed certificate files cannot be used; serving the old one');
        },
      });
      closers.add(() => watch.stop());
    }
    return { url: urlOf(listener, files !== null), store, close: closers.closeAll };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

function urlOf({ address: { host, port } }: Listener, secure: boolean): string {
  return `${secure ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
