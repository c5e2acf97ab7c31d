/** The stream of new notifications, `/api/live`. It is closed while the page is hidden, and then resumed. */

export interface StreamHandlers {
  /** Called with each message. `name` is the event of the stream. */
  onMessage(name: string, data: unknown): void;
  onState(state: 'open' | 'lost' | 'hidden'): void;
}

/** Names of the events of the stream. */
const events = ['update', 'gap'];

/** Opens the stream. `url` returns its address, with the last id received; null before the first message. */
export function openStream(
  url: (lastId: string | null) => string,
  handlers: StreamHandlers,
): () => void {
  let source: EventSource | null = null;
  let lastId: string | null = null;
  let isClosed = false;
  let retryMs = 1_000;
  const stop = () => {
    source?.close();
    source = null;
  };
  const start = () => {
    if (isClosed || document.hidden || source !== null) return;
    const opened = new EventSource(url(lastId));
    source = opened;
    opened.addEventListener('open', () => {
      retryMs = 1_000;
      handlers.onState('open');
    });
    // The browser retries after some failures only, so every retry is made here.
    opened.addEventListener('error', () => {
      stop();
      handlers.onState('lost');
      setTimeout(start, retryMs * (0.75 + Math.random() / 2));
      retryMs = Math.min(2 * retryMs, 15_000);
    });
    for (const name of events) {
      opened.addEventListener(name, (message: MessageEvent<string>) => {
        if (message.lastEventId !== '') lastId = message.lastEventId;
        handlers.onMessage(name, JSON.parse(message.data));
      });
    }
  };
  const onVisibility = () => {
    if (document.hidden) {
      stop();
      handlers.onState('hidden');
    } else start();
  };
  document.addEventListener('visibilitychange', onVisibility);
  start();
  return () => {
    isClosed = true;
    document.removeEventListener('visibilitychange', onVisibility);
    stop();
  };
}

/** Reports that something arrived, for pages that then load their content again. */
export function listenForArrivals(handlers: {
  onArrival(): void;
  onState: StreamHandlers['onState'];
}): void {
  openStream(
    (lastId) => (lastId === null ? '/api/live?rows=0' : `/api/live?rows=0&after=${lastId}`),
    {
      onMessage: handlers.onArrival,
      onState: handlers.onState,
    },
  );
}

/** Returns the data of the page. */
export function pageData<Data>(): Data {
  return JSON.parse(document.getElementById('page-data')?.textContent ?? '{}') as Data;
}
