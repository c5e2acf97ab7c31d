/** The live list: rows as they arrive, pause and resume, details of a row. */
import { type ComponentChild, Fragment, h, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { showConnection } from '../../../core/page/browser/shell.ts';
import { addressOf, asCalled, openStream, pageData } from '../../../core/page/browser/stream.ts';
import {
  eventTones,
  type LiveFacts,
  liveFacts,
  printable,
  shellText,
  timeText,
} from '../../../core/page/browser/texts.ts';

interface Row extends LiveFacts {
  position: number;
  productId: string;
  productName: string | null;
  event: string;
  /** Not for the rows of the page itself. */
  isHighlighted?: boolean;
}

interface Frame {
  lastPosition: number;
  indexedPosition: number | null;
  omitted: number;
  rows: Row[];
  products: Pick<Row, 'position' | 'cells'>[];
}

const data = pageData<{
  rows: Row[];
  rowsMax: number;
  stream: string | null;
  after: string;
  passwordNeeded: boolean;
}>();
/** New rows of a frame that are highlighted: more would delay the page, and show nothing. */
const highlightedMax = 20;
const countText = new Intl.NumberFormat('en-GB');

/** State of the list. New rows collect in `waiting` while the list is paused. */
interface Shown {
  rows: Row[];
  waiting: Row[];
  /** Number of notifications since the pause, also of those that no frame lists. */
  waitingCount: number;
  omitted: number;
  /** Notifications that are not indexed yet; null without an index. */
  lag: number | null;
  /** Too many notifications are missing: the list must be loaded again. */
  isIncomplete: boolean;
}

function LiveList() {
  const [shown, change] = useState<Shown>({
    rows: data.rows,
    waiting: [],
    waitingCount: 0,
    omitted: 0,
    lag: 0,
    isIncomplete: false,
  });
  const [isPaused, pause] = useState(false);
  const [open, setOpen] = useState<number | null>(null);
  // A list that is being read must not move.
  const waits = useRef(false);
  waits.current = isPaused || open !== null;
  useEffect(() => {
    if (data.stream === null) return undefined;
    let isFirst = true;
    return openStream(data.stream, data.after, {
      onMessage: (name, message) => {
        const { current } = waits;
        if (name !== 'gap') change((former) => withFrame(former, message as Frame, current));
        // Many have arrived since the page was rendered: a reload would only repeat that.
        else if (current || isFirst)
          change((former) => withGap(former, message as { from: number; to: number }));
        else location.reload();
        isFirst = false;
      },
      onState: showConnection,
    });
  }, []);
  const resume = () => {
    if (shown.isIncomplete) return location.reload();
    pause(false);
    setOpen(null);
    change(withWaiting);
  };
  const controls = h('div', { class: 'toolbar' }, controlOf(shown, isPaused, pause, resume));
  return h(
    'section',
    { class: 'panel' },
    h('header', null, h('h2', null, 'Notifications'), controls),
    notesOf(shown),
    shown.rows.length === 0 ? emptyList() : tableOf(shown.rows, open, setOpen),
  );
}

function controlOf(
  { waitingCount }: Shown,
  isPaused: boolean,
  pause: (isPaused: boolean) => void,
  resume: () => void,
): ComponentChild {
  if (data.stream === null) return h('p', { class: 'note' }, 'This period has ended.');
  const waiting = waitingCount > 0 ? `${countText.format(waitingCount)} new` : '';
  if (!isPaused && waiting === '') {
    return h('button', { type: 'button', onClick: () => pause(true) }, 'Pause');
  }
  const text = isPaused ? `Resume${waiting && ` (${waiting})`}` : `Show ${waiting}`;
  return h('button', { type: 'button', class: 'primary', onClick: resume }, text);
}

function notesOf({ omitted, lag }: Shown): ComponentChild {
  const notes = [
    omitted > 0 &&
      `Up to ${countText.format(omitted)} notifications arrived too fast to be listed; all are stored.`,
    lag === null &&
      'There is no product index: cloud cover and place are not known. Check: `earshot admin index`',
    lag !== null &&
      lag > 1_000 &&
      `The product index lags by ${countText.format(lag)} notifications: details appear later.`,
  ].filter((text) => typeof text === 'string');
  return notes.map((text) => h('p', { class: 'note', role: 'status' }, withCommands(text)));
}

/** Shows a text in which commands stand in backquotes. */
function withCommands(text: string): ComponentChild[] {
  return text.split('`').map((part, i) => (i % 2 === 1 ? h('code', null, asCalled(part)) : part));
}

function emptyList(): ComponentChild {
  return h(
    'div',
    { class: 'empty' },
    h('p', null, 'No notification in this period matches.'),
    data.stream !== null && h('p', null, 'New ones appear here automatically.'),
  );
}

function withFrame(former: Shown, frame: Frame, waits: boolean): Shown {
  const cells = new Map(frame.products.map((one) => [one.position, one.cells]));
  const complete = (rows: Row[]) =>
    rows.map((row) => ({ ...row, cells: cells.get(row.position) ?? row.cells }));
  const { lastPosition, indexedPosition } = frame;
  // The stream starts before the rows of the page were read.
  const known = new Set([...former.rows, ...former.waiting].map(({ position }) => position));
  const isHighlighted = frame.rows.length <= highlightedMax;
  const rows = frame.rows
    .filter(({ position }) => !known.has(position))
    .map((row) => ({ ...row, isHighlighted }));
  const next: Shown = {
    rows: complete(former.rows),
    waiting: [...rows, ...complete(former.waiting)].slice(0, data.rowsMax),
    waitingCount: former.waitingCount + rows.length + frame.omitted,
    omitted: former.omitted + frame.omitted,
    lag: indexedPosition === null ? null : lastPosition - indexedPosition,
    isIncomplete: former.isIncomplete,
  };
  return waits ? next : withWaiting(next);
}

/** Counts the notifications of a gap; the list is loaded again when the reader resumes. */
function withGap(former: Shown, { from, to }: { from: number; to: number }): Shown {
  const waitingCount = former.waitingCount + Math.max(0, to - from);
  return { ...former, waitingCount, isIncomplete: true };
}

function withWaiting(former: Shown): Shown {
  if (former.waitingCount === 0) return former;
  const rows = [...former.waiting, ...former.rows].slice(0, data.rowsMax);
  return { ...former, rows, waiting: [], waitingCount: 0 };
}

const caption = 'Notifications, newest first';
const columns = [
  { title: 'received (UTC)', class: '' },
  { title: 'event', class: '' },
  { title: 'product', class: 'product-name' },
  ...liveFacts,
];

function tableOf(
  rows: readonly Row[],
  open: number | null,
  setOpen: (position: number | null) => void,
): ComponentChild {
  const head = columns.map((one) => h('th', { scope: 'col', class: one.class }, one.title));
  const body = rows.map((row) => {
    const isOpen = open === row.position;
    const details = h('td', { colSpan: columns.length }, isOpen && h(Details, { row }));
    return h(
      Fragment,
      { key: row.position },
      rowOf(row, isOpen, () => setOpen(isOpen ? null : row.position)),
      isOpen && h('tr', { class: 'details' }, details),
    );
  });
  return h(
    'div',
    { class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': caption },
    h(
      'table',
      { 'data-list': '' },
      h('caption', { class: 'visually-hidden' }, caption),
      h('thead', null, h('tr', null, head)),
      h('tbody', null, body),
    ),
  );
}

function rowOf(row: Row, isOpen: boolean, toggle: () => void): ComponentChild {
  const { receivedAt, event, productName, productId } = row;
  const today = new Date().toISOString().slice(0, 10);
  const time = h('time', { dateTime: receivedAt, class: 'tight' }, timeText(receivedAt, today));
  const tone = eventTones[event] ?? 'plain';
  const button = { type: 'button', class: 'quiet name', 'aria-expanded': isOpen, onClick: toggle };
  const name = h('button', button, printable(productName ?? productId));
  // The button is small: a click anywhere in the row has the same effect, unless it selects text.
  const onClick = ({ target }: Event) => {
    const isOwn = target instanceof Element && target.closest('a, button') === null;
    if (isOwn && getSelection()?.isCollapsed) toggle();
  };
  return h(
    'tr',
    { class: row.isHighlighted ? 'arrived' : '', onClick },
    h('td', null, time),
    h('td', null, h('span', { class: `badge ${tone}` }, printable(event))),
    h('td', { class: 'product-name' }, name),
    liveFacts.map((one) => h('td', { class: one.class }, cellText(one.text(row)))),
  );
}

const cellText = (text: string | null) =>
  text === null ? h('span', { class: 'dim' }, '-') : printable(text);

/** A loaded notification, or why it could not be loaded. */
type Loaded = { fields: Record<string, unknown>; body: string } | { failure: string };

/** Shows all fields of a notification and its body, with buttons that copy. */
function Details({ row }: { row: Row }) {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  useEffect(() => {
    void loadNotification(row.position).then(setLoaded);
  }, [row.position]);
  const product = addressOf(`/products/${encodeURIComponent(row.productId)}`);
  const url = addressOf(`/api/notification?position=${row.position}`);
  const login = data.passwordNeeded ? ' --user earshot' : '';
  const query = asCalled(`earshot query --product-id=${shellText(printable(row.productId))}`);
  const copies = [
    ['Copy id', printable(row.productId)],
    ['Copy query command', query],
    ['Copy curl command', `curl${login} '${url}'`],
  ] as const;
  return h(
    'div',
    { class: 'detail' },
    h(
      'div',
      { class: 'toolbar' },
      h('a', { class: 'button', href: product }, 'Open product'),
      copies.map(([label, text]) =>
        h('button', { type: 'button', 'data-copy': text, key: label }, label),
      ),
    ),
    loaded === null ? h('p', { class: 'note' }, 'Loading …') : contentOf(loaded),
  );
}

function contentOf(loaded: Loaded): ComponentChild {
  if ('failure' in loaded) return h('p', { class: 'note' }, loaded.failure);
  const facts = Object.entries(loaded.fields).map(([name, value]) => [
    h('dt', null, name),
    h('dd', null, value === null ? '-' : printable(String(value))),
  ]);
  const body = indented(loaded.body).split('\n').map(printable).join('\n');
  return [
    h('dl', { class: 'facts' }, facts),
    h('h3', null, 'Body'),
    h('pre', { class: 'body', tabIndex: 0 }, body),
  ];
}

async function loadNotification(position: number): Promise<Loaded> {
  try {
    const url = addressOf(`/api/notification?position=${position}`);
    const answer = await fetch(url, { signal: AbortSignal.timeout(35_000) });
    const { body = '', ...fields } = await answer.json();
    return answer.ok ? { fields, body } : { failure: String(fields.detail) };
  } catch {
    return {
      failure: 'The receiver does not answer. Close the row and open it again to retry.',
    };
  }
}

/** JSON with indentation; any other text unchanged. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const root = document.getElementById('live');
if (root !== null) {
  root.replaceChildren();
  render(h(LiveList, null), root);
}
