/** The stream of new notifications, `/api/live`. It is closed while the page is hidden, and then resumed. */

/** `lost`: the stream was not opened, also because the receiver has the maximum number of streams. */
export type StreamState = 'open' | 'lost' | 'hidden';

export interface StreamHandlers {
  /** Called with each message. `name` is the event of the stream. */
  onMessage(name: string, data: unknown): void;
  onState(state: StreamState): void;
}

/** Names of the events of the stream. */
const events = ['update', 'gap'];

/** Opens the stream. `path` is its address without the position; `after` is the id after which it starts. */
export function openStream(path: string, after: string, handlers: StreamHandlers): () => void {
  let source: EventSource | null = null;
  let lastId = after;
  let isClosed = false;
  let retryMs = 1_000;
  const stop = () => {
    source?.close();
    source = null;
  };
  const start = () => {
    if (isClosed || document.hidden || source !== null) return;
    const position = lastId === '' ? '' : `${path.includes('?') ? '&' : '?'}after=${lastId}`;
    const opened = new EventSource(addressOf(`${path}${position}`));
    let wasOpen = false;
    source = opened;
    opened.addEventListener('open', () => {
      wasOpen = true;
      retryMs = 1_000;
      handlers.onState('open');
    });
    // The browser retries after some failures only, so every retry is made here.
    opened.addEventListener('error', () => {
      stop();
      setTimeout(start, retryMs * (0.75 + Math.random() / 2));
      retryMs = Math.min(2 * retryMs, 15_000);
      // After a lost connection, the next attempt usually succeeds.
      if (!wasOpen) handlers.onState('lost');
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

/** Returns the address of a path of the listener, also behind a proxy with a prefix. */
export function addressOf(path: string): string {
  // This file is /assets/<digest>/stream.js.
  return new URL(`../..${path}`, import.meta.url).href;
}

/** Returns the data of the page. */
export function pageData<Data>(): Data {
  return JSON.parse(document.getElementById('page-data')?.textContent ?? '{}') as Data;
}

/** Returns a command with the name of the program as the user calls it. */
export function asCalled(command: string): string {
  const { program = 'earshot' } = document.documentElement.dataset;
  return command.replace(/^earshot(?= [a-z-])/, () => program);
}
