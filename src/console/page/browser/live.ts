/** The live list: rows as they arrive, pause and resume, details of a row. */
import { type ComponentChild, Fragment, h, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { prepareContent, showConnection } from './shell.ts';
import { addressOf, asCalled, openStream, pageData } from './stream.ts';
import { delayText, eventTones, printable, shellText } from './texts.ts';

interface Row {
  position: number;
  productId: string;
  productName: string | null;
  event: string;
  subscription: string | null;
  notificationDate: string | null;
  receivedAt: string;
  cells: Record<'mission' | 'type' | 'sensed' | 'tile' | 'cloud' | 'place', string | null>;
  /** Not for the rows of the page itself. */
  isHighlighted?: boolean;
}

interface Gap {
  from: number;
  to: number;
}

interface Frame {
  lastPosition: number;
  indexedPosition: number | null;
  count: number;
  omitted: number;
  rows: Row[];
  products: Pick<Row, 'position' | 'cells'>[];
}

interface PageData {
  rows: Row[];
  rowsMax: number;
  stream: string | null;
  after: string;
  passwordNeeded: boolean;
}

const data = pageData<PageData>();
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
  const paused = useRef(isPaused);
  paused.current = isPaused;
  // A list that is being read must not move.
  const reading = useRef(false);
  reading.current = open !== null;
  useEffect(() => {
    if (data.stream === null) return undefined;
    let isFirst = true;
    return openStream(data.stream, data.after, {
      onMessage: (name, message) => {
        const waits = paused.current || reading.current;
        if (name !== 'gap') change((former) => withFrame(former, message as Frame, waits));
        // Many have arrived since the page was rendered: a reload would only repeat that.
        else if (waits || isFirst) change((former) => withGap(former, message as Gap));
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
  return h(
    'section',
    { class: 'panel' },
    h(
      'header',
      null,
      h('h2', null, 'Notifications'),
      h(
        'div',
        { class: 'toolbar' },
        controlsOf(shown, isPaused, { pause: () => pause(true), resume }),
      ),
    ),
    notesOf(shown),
    shown.rows.length === 0 ? emptyList() : tableOf(shown.rows, open, setOpen),
  );
}

function controlsOf(
  { waitingCount }: Shown,
  isPaused: boolean,
  { pause, resume }: { pause(): void; resume(): void },
): ComponentChild {
  if (data.stream === null) return h('p', { class: 'note' }, 'This period has ended.');
  const waiting = `${countText.format(waitingCount)} new`;
  if (!isPaused && waitingCount > 0) {
    return h('button', { type: 'button', class: 'primary', onClick: resume }, `Show ${waiting}`);
  }
  if (!isPaused) return h('button', { type: 'button', onClick: pause }, 'Pause');
  const text = waitingCount > 0 ? `Resume (${waiting})` : 'Resume';
  return h('button', { type: 'button', class: 'primary', onClick: resume }, text);
}

function notesOf({ omitted, lag }: Shown): ComponentChild {
  const notes = [
    ...(omitted > 0
      ? [
          `Up to ${countText.format(omitted)} notifications arrived too fast to be listed; all are stored.`,
        ]
      : []),
    ...(lag === null
      ? [
          'There is no product index: cloud cover and place are not known. Check: `earshot admin index`',
        ]
      : []),
    ...(lag !== null && lag > 1_000
      ? [`The product index lags by ${countText.format(lag)} notifications: details appear later.`]
      : []),
  ];
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
    cells.size === 0
      ? rows
      : rows.map((row) => ({ ...row, cells: cells.get(row.position) ?? row.cells }));
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
function withGap(former: Shown, { from, to }: Gap): Shown {
  const waitingCount = former.waitingCount + Math.max(0, to - from);
  return { ...former, waitingCount, isIncomplete: true };
}

function withWaiting(former: Shown): Shown {
  if (former.waitingCount === 0) return former;
  const rows = [...former.waiting, ...former.rows].slice(0, data.rowsMax);
  return { ...former, rows, waiting: [], waitingCount: 0 };
}

const titles = [
  ...['received (UTC)', 'event', 'mission', 'type', 'tile/orbit', 'place', 'cloud', 'delay'],
  ...['subscription', 'product'],
];
const numbers = ['cloud', 'delay'];

function tableOf(
  rows: readonly Row[],
  open: number | null,
  setOpen: (position: number | null) => void,
): ComponentChild {
  return h(
    'div',
    { class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Notifications, newest first' },
    h(
      'table',
      { 'data-list': '' },
      h('caption', { class: 'visually-hidden' }, 'Notifications, newest first'),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          titles.map((title) =>
            h('th', { scope: 'col', class: numbers.includes(title) ? 'num' : '' }, title),
          ),
        ),
      ),
      h(
        'tbody',
        null,
        rows.map((row) =>
          h(
            Fragment,
            { key: row.position },
            rowOf(row, open === row.position, setOpen),
            open === row.position &&
              h(
                'tr',
                { class: 'details' },
                h('td', { colSpan: titles.length }, h(Details, { row })),
              ),
          ),
        ),
      ),
    ),
  );
}

const today = () => new Date().toISOString().slice(0, 10);

function rowOf(
  row: Row,
  isOpen: boolean,
  setOpen: (position: number | null) => void,
): ComponentChild {
  const { receivedAt, event, cells, subscription, productName, productId } = row;
  const name = printable(productName ?? productId);
  const isToday = receivedAt.startsWith(today());
  const received = isToday ? receivedAt.slice(11, 19) : receivedAt.slice(5, 19).replace('T', ' ');
  const tone = eventTones[event] ?? 'plain';
  const text = (value: string | null, name = '') =>
    h('td', { class: name }, printable(value ?? '-'));
  return h(
    'tr',
    {
      class: row.isHighlighted ? 'arrived' : '',
      // On a narrow screen, the button is outside.
      onClick: ({ target }: Event) => {
        const isOwn = target instanceof Element && target.closest('a, button') === null;
        if (isOwn && getSelection()?.isCollapsed) setOpen(isOpen ? null : row.position);
      },
    },
    h('td', null, h('time', { dateTime: receivedAt, class: 'tight' }, received)),
    h('td', null, h('span', { class: `badge ${tone}` }, printable(event))),
    text(cells.mission),
    text(cells.type),
    text(cells.tile, 'tight'),
    text(cells.place, 'place'),
    text(cells.cloud, 'num'),
    text(delayText(row.notificationDate, row.receivedAt), 'num'),
    text(subscription),
    h(
      'td',
      { class: 'clip' },
      h(
        'button',
        {
          type: 'button',
          class: 'quiet name',
          title: name,
          'aria-expanded': isOpen,
          onClick: () => setOpen(isOpen ? null : row.position),
        },
        name,
      ),
    ),
  );
}

interface Loaded {
  fields: Record<string, unknown> | null;
  body: string | null;
  /** Why the notification could not be loaded. */
  failure: string | null;
}

/** Shows all fields of a notification and its body, with buttons that copy. */
function Details({ row }: { row: Row }) {
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    void loadNotification(row.position).then(setLoaded);
  }, [row.position]);
  useEffect(() => {
    if (place.current !== null) prepareContent(place.current);
  }, []);
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
    { class: 'detail', ref: place },
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

function contentOf({ fields, body, failure }: Loaded): ComponentChild {
  if (failure !== null) return h('p', { class: 'note' }, failure);
  return [
    h(
      'dl',
      { class: 'facts' },
      Object.entries(fields ?? {}).map(([name, value]) => [
        h('dt', null, name),
        h('dd', null, value === null ? '-' : printable(String(value))),
      ]),
    ),
    h('h3', null, 'Body'),
    h('pre', { class: 'body', tabIndex: 0 }, printableLines(body ?? '')),
  ];
}

async function loadNotification(position: number): Promise<Loaded> {
  try {
    const answer = await fetch(addressOf(`/api/notification?position=${position}`), {
      signal: AbortSignal.timeout(35_000),
    });
    const { body = '', ...fields } = await answer.json();
    if (!answer.ok) return { fields: null, body: null, failure: String(fields.detail) };
    return { fields, body: indented(body), failure: null };
  } catch {
    const failure = 'The receiver does not answer. Close the row and open it again to retry.';
    return { fields: null, body: null, failure };
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

function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

const root = document.getElementById('live');
if (root !== null) {
  root.replaceChildren();
  render(h(LiveList, null), root);
}
