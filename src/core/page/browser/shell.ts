/** Behaviour of every page: ages, copy buttons, forms, and content that refreshes itself. */
import morph from 'morphdom';
import { asCalled, openStream, type StreamState } from './stream.ts';
import { ageText } from './texts.ts';

/** Shortest time between two refreshes, of the live list and of other pages; and the longest while nothing arrives. */
const refreshMs = { live: 1_000, least: 5_000, most: 30_000 };

/** Time within which a notification is usually indexed. */
const indexedMs = 1_500;

addForms();
addCopyButtons();
setInterval(() => updateAges(document), 5_000);
addFilterField();
const refreshed = document.querySelector<HTMLElement>('main[data-refresh]');
if (refreshed !== null) keepFresh(refreshed);

/** Choices apply at once; a text needs Enter or the button. */
function addForms(): void {
  const formOf = ({ target }: Event) =>
    (target as Element).closest<HTMLFormElement>('form[data-submit-on-change]');
  document.addEventListener('change', (event) => {
    const isChoice = (event.target as Element).matches('select, [type="checkbox"]');
    const form = formOf(event);
    if (isChoice && form !== null) submitState(form);
  });
  document.addEventListener('submit', (event) => {
    const form = formOf(event);
    if (form === null) return;
    event.preventDefault();
    submitState(form, event.submitter);
  });
}

/** Opens the page of a form without its empty fields, so that links stay short. */
function submitState(form: HTMLFormElement, submitter: HTMLElement | null = null): void {
  const url = new URL(form.action);
  for (const [name, value] of new FormData(form, submitter)) {
    if (typeof value === 'string' && value !== '') url.searchParams.set(name, value);
  }
  location.assign(url);
}

/** Adds the keys of the filter: `/` focuses it. */
function addFilterField(): void {
  const field = document.querySelector<HTMLTextAreaElement>('textarea[data-search]');
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || isTyping(event.target)) return;
    event.preventDefault();
    document.querySelector<HTMLElement>('[data-search]')?.focus();
  });
  if (field === null) return;
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') field.blur();
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    field.form?.requestSubmit();
  });
}

function addCopyButtons(): void {
  document.addEventListener('click', async ({ target }) => {
    const button = (target as Element).closest<HTMLElement>('[data-copy]');
    if (button === null) return;
    const label = button.dataset.label ?? button.textContent;
    button.dataset.label = label;
    button.textContent = (await copied(button.dataset.copy ?? '')) ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => {
      button.textContent = label;
    }, 1_500);
  });
}

/** Copies a text. Browsers provide the clipboard on HTTPS and localhost only: elsewhere the text is selected. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement('textarea');
    field.value = text;
    document.body.append(field);
    field.select();
    field.addEventListener('blur', () => field.remove());
    return false;
  }
}

function updateAges(root: ParentNode): void {
  const now = Date.now();
  for (const shown of root.querySelectorAll<HTMLElement>('[data-age]')) {
    const at = Date.parse(shown.closest('time')?.dateTime ?? '');
    if (Number.isNaN(at)) continue;
    shown.textContent = ageText((now - at) / 1_000);
  }
}

/**
 * Replaces the content when notifications arrive, and regularly, unless a script of the page pauses that. The time between
 * two refreshes grows with their duration, so that a slow query is not repeated all the time.
 */
function keepFresh(content: HTMLElement): void {
  const leastMs = content.matches('[data-live]') ? refreshMs.live : refreshMs.least;
  let dueAt = performance.now() + refreshMs.most;
  let earliestAt = 0;
  let isRunning = false;
  const run = async () => {
    const beganAt = performance.now();
    isRunning = true;
    // Before the request, so that a later arrival makes the next refresh due.
    dueAt = beganAt + refreshMs.most;
    const isCurrent = await refresh();
    isRunning = false;
    const endedAt = performance.now();
    earliestAt = endedAt + Math.max(leastMs, 10 * (endedAt - beganAt));
    if (!isCurrent) dueAt = endedAt + 2_000;
  };
  setInterval(() => {
    const now = performance.now();
    const mustWait = document.hidden || content.hasAttribute('data-paused');
    if (!mustWait && !isRunning && now >= dueAt && now >= earliestAt) void run();
  }, 250);
  const due = (inMs: number) => {
    dueAt = Math.min(dueAt, performance.now() + inMs);
  };
  openStream({
    onPositions: (positions) => {
      document.dispatchEvent(new CustomEvent('positions', { detail: positions }));
      const { lastPosition, indexedPosition } = positions;
      if (content.dataset.refresh === `${lastPosition}.${indexedPosition}`) return;
      // A product is usually indexed at once: a page without it would be shown for a moment only.
      due((indexedPosition ?? lastPosition) >= lastPosition ? 0 : indexedMs);
    },
    onState: (state) => {
      if (state === 'lost') due(0);
    },
  });
}

/** Loads the page and shows it. Resolves with false when it could not be loaded: the former content stays. */
export async function refresh(): Promise<boolean> {
  const { page, isLost } = await loadPage();
  const next = page?.querySelector('main') ?? null;
  const now = document.querySelector('main');
  if (page === null || next === null || now === null || isLost) {
    showConnection('lost');
    return false;
  }
  if (next.matches('[data-failed]')) {
    if (!now.matches('[data-failed]')) showConnection('failed');
    return false;
  }
  showConnection('open');
  // The page was opened while it could not be shown.
  if (now.matches('[data-failed]')) location.reload();
  else replaceContent(now, next, page);
  return true;
}

/** Loads the page again. A document from a request needs no Trusted Types, and its scripts do not run. */
function loadPage(): Promise<{ page: Document | null; isLost: boolean }> {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    const fail = () => resolve({ page: null, isLost: true });
    request.open('GET', location.href);
    request.responseType = 'document';
    request.timeout = 35_000;
    request.onload = () => resolve({ page: request.responseXML, isLost: request.status === 0 });
    request.onerror = fail;
    request.ontimeout = fail;
    request.send();
  });
}

/** Changes the parts of the page that differ. Keeps the focus, also in a row that moves, and the scroll position. */
function replaceContent(now: HTMLElement, next: HTMLElement, page: Document): void {
  const focused = document.activeElement;
  // The key of a row depends on its table, from which the library may detach it.
  const keys = new WeakMap<Node, string>();
  const getNodeKey = (node: Node) => {
    const key = keys.get(node) ?? keyOf(node);
    keys.set(node, key);
    return key;
  };
  const options = { getNodeKey, onBeforeElUpdated: mustUpdate };
  const [nav, nextNav] = [document.querySelector('nav'), page.querySelector('nav')];
  if (nav !== null && nextNav !== null) morph(nav, nextNav, options);
  morph(now, next, { ...options, childrenOnly: true });
  if (next.dataset.refresh !== undefined) now.dataset.refresh = next.dataset.refresh;
  if (focused instanceof HTMLElement && focused !== document.activeElement) {
    focused.focus({ preventScroll: true });
  }
  updateAges(now);
}

/** Rows of a table are the same if they have the same first link. */
function keyOf(node: Node): string {
  if (!(node instanceof HTMLElement)) return '';
  if (node.id !== '' || !node.matches('[data-list] tbody > tr')) return node.id;
  const href = node.querySelector('a')?.getAttribute('href') ?? '';
  return `${node.closest('table')?.caption?.textContent} ${href}`;
}

/** The script of the map draws the map itself. Ages are updated in place; people open and close. */
function mustUpdate(now: HTMLElement, next: HTMLElement): boolean {
  if (now.matches('.map, .banner, .heading, [data-age]')) return false;
  if (now === document.activeElement && isTyping(now)) return false;
  if (now instanceof HTMLDetailsElement) next.toggleAttribute('open', now.open);
  return !now.isEqualNode(next);
}

const problems = {
  lost: [
    'The receiver has not answered since',
    'If many pages show live data, close one. If this stays, check that the receiver runs: `earshot status`',
  ],
  failed: [
    'The receiver cannot answer queries since',
    'If this stays, check the receiver: `earshot status`',
  ],
} as const;

/** Shows a problem of the connection, since when, and what to do; removes it for `open`. */
export function showConnection(state: StreamState | 'failed'): void {
  const banner = document.querySelector<HTMLElement>('.banner');
  if (banner === null || state === 'hidden') return;
  if (state === 'open') {
    banner.hidden = true;
    delete banner.dataset.since;
    return;
  }
  banner.dataset.since ??= new Date().toISOString().slice(11, 19);
  banner.hidden = false;
  const [what, next] = problems[state];
  const text = `${what} ${banner.dataset.since} UTC. This page shows old data, and reconnects automatically. ${next}`;
  const parts = text
    .split('`')
    .map((part, i) => (i % 2 === 1 ? element('code', asCalled(part)) : part));
  banner.replaceChildren(...parts);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
  );
}

/** Creates an element with a text. */
export function element(name: string, text: string): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
