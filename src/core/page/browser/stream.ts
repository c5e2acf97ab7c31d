/** The stream of positions, `/api/live`. It is closed while the page is hidden, and then opened again. */

/** `lost`: the stream was not opened, also because the receiver has the maximum number of streams. */
export type StreamState = 'open' | 'lost' | 'hidden';

/** Last positions of the log and of the product index; null without an index. */
export interface Positions {
  lastPosition: number;
  indexedPosition: number | null;
}

export interface StreamHandlers {
  /** Called with the current positions, and with each change. */
  onPositions(positions: Positions): void;
  onState(state: StreamState): void;
}

/** Opens the stream. */
export function openStream({ onPositions, onState }: StreamHandlers): void {
  let source: EventSource | null = null;
  let retryMs = 1_000;
  const stop = () => {
    source?.close();
    source = null;
  };
  const start = () => {
    if (document.hidden || source !== null) return;
    const opened = new EventSource(addressOf('/api/live'));
    let wasOpen = false;
    source = opened;
    opened.addEventListener('open', () => {
      wasOpen = true;
      retryMs = 1_000;
      onState('open');
    });
    // The browser retries after some failures only, so every retry is made here.
    opened.addEventListener('error', () => {
      stop();
      setTimeout(start, retryMs * (0.75 + Math.random() / 2));
      retryMs = Math.min(2 * retryMs, 15_000);
      // After a lost connection, the next attempt usually succeeds.
      if (!wasOpen) onState('lost');
    });
    opened.addEventListener('update', ({ data }: MessageEvent<string>) => {
      onPositions(JSON.parse(data));
    });
  };
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      stop();
      onState('hidden');
    } else start();
  });
  start();
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
