/** Behaviour of every page: theme, ages, copy buttons, and content that refreshes itself. */
import { addKeyboard, element, isTyping, listRows, select } from './keyboard.ts';
import { asCalled, openStream, type StreamState } from './stream.ts';
import { ageText } from './texts.ts';

const storage = {
  get: (name: string): string | null => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  },
  set: (name: string, value: string): void => {
    try {
      localStorage.setItem(name, value);
    } catch {
      // The browser blocks storage: the choice applies until the next page.
    }
  },
};

/** Shortest time between two refreshes, and the longest while nothing arrives. */
const refreshMs = { least: 1_000, most: 30_000 };

addThemeButton();
prepareContent(document);
setInterval(() => updateAges(document), 5_000);
addKeyboard(storage);
addFilterField();
showCurrentTab();
for (const area of document.querySelectorAll<HTMLElement>('.by-hour')) showFirstMissing(area);
const refreshed = document.querySelector<HTMLElement>('main[data-refresh]');
if (refreshed !== null) keepFresh(refreshed.dataset.refresh ?? '');

/** Scrolls the tabs of a narrow window to the current page. */
function showCurrentTab(): void {
  const nav = document.querySelector<HTMLElement>('.sidebar nav');
  if (nav === null || nav.scrollWidth <= nav.clientWidth) return;
  const tab = nav.querySelector('[aria-current]');
  tab?.scrollIntoView({ inline: 'center', block: 'nearest' });
}

/** Scrolls a table that is wider than the window to its first missing hour. */
function showFirstMissing(area: HTMLElement): void {
  const cell = area.querySelector<HTMLElement>('.cell.bad')?.closest('td') ?? null;
  if (cell === null || area.scrollWidth <= area.clientWidth) return;
  area.scrollLeft = cell.offsetLeft - area.clientWidth / 2;
}

function addThemeButton(): void {
  const button = document.querySelector<HTMLButtonElement>('[data-theme-button]');
  if (button === null) return;
  const themes = ['system', 'light', 'dark'];
  const show = () => {
    button.textContent = `Theme: ${document.documentElement.dataset.theme ?? 'system'}`;
  };
  button.hidden = false;
  show();
  button.addEventListener('click', () => {
    const now = document.documentElement.dataset.theme ?? 'system';
    const next = themes[(themes.indexOf(now) + 1) % themes.length] ?? 'system';
    if (next === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    storage.set('theme', next);
    show();
    document.dispatchEvent(new Event('themechange'));
  });
}

/** Adds behaviour to new content. */
export function prepareContent(root: ParentNode): void {
  for (const button of root.querySelectorAll<HTMLButtonElement>('[data-copy]')) addCopy(button);
  for (const form of root.querySelectorAll<HTMLFormElement>('form[data-submit-on-change]')) {
    // Choices apply at once; a text needs Enter or the button.
    form.addEventListener('change', ({ target }) => {
      if ((target as Element).matches('select, [type="checkbox"]')) submitState(form);
    });
    const hasText = form.querySelector('input:not([type="hidden"])') !== null;
    for (const button of form.querySelectorAll<HTMLButtonElement>('[type="submit"]')) {
      button.hidden = !hasText;
    }
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      submitState(form, event.submitter);
    });
  }
}

/** Opens the page of a form without its empty fields, so that links stay short. */
function submitState(form: HTMLFormElement, submitter: HTMLElement | null = null): void {
  const url = new URL(form.action);
  for (const [name, value] of new FormData(form, submitter)) {
    if (typeof value === 'string' && value !== '') url.searchParams.set(name, value);
  }
  location.assign(url);
}

/** Adds the keys of the filter, the buttons that insert a condition, and the way back from a product to its search. */
function addFilterField(): void {
  const field = document.querySelector<HTMLTextAreaElement>('textarea[data-search]');
  keepSearch(field !== null);
  if (field === null) return;
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') field.blur();
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    field.form?.requestSubmit();
  });
  document.addEventListener('click', ({ target }) => {
    const button = (target as Element).closest<HTMLElement>('[data-insert]');
    if (button !== null) insertCondition(field, button.dataset.insert ?? '');
  });
}

/** Inserts a condition at the cursor and selects its value, an ellipsis. The browser can undo it. */
function insertCondition(field: HTMLTextAreaElement, condition: string): void {
  const start = field.selectionStart;
  const isFirst = /(?:^|\(|\b(?:and|or|not))\s*$/i.test(field.value.slice(0, start));
  const text = isFirst ? condition : ` and ${condition}`;
  field.focus();
  if (!document.execCommand('insertText', false, text)) field.setRangeText(text);
  const value = field.value.indexOf('…', start);
  field.setSelectionRange(value, value + 1);
}

/** Pages send no referrer, so the tab remembers the search to which the page of a product leads back. */
function keepSearch(isSearch: boolean): void {
  try {
    if (isSearch) sessionStorage.setItem('search', location.search);
    const back = document.querySelector<HTMLAnchorElement>('a[data-back]');
    if (back !== null) back.search = sessionStorage.getItem('search') ?? '';
  } catch {
    // The browser blocks storage: the link leads to all products.
  }
}

function addCopy(button: HTMLButtonElement): void {
  button.hidden = false;
  const label = [...button.childNodes];
  button.addEventListener('click', async () => {
    button.textContent = (await copied(button.dataset.copy ?? '')) ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => {
      button.replaceChildren(...label);
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
 * Replaces the content when notifications arrive, and regularly. The time between two refreshes grows with their
 * duration, so that a slow query is not repeated all the time.
 */
function keepFresh(position: string): void {
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
    earliestAt = endedAt + Math.max(refreshMs.least, 10 * (endedAt - beganAt));
    if (!isCurrent) dueAt = endedAt + 2_000;
  };
  setInterval(() => {
    const now = performance.now();
    if (!document.hidden && !isRunning && now >= dueAt && now >= earliestAt) void run();
  }, 250);
  const due = () => {
    dueAt = 0;
  };
  openStream('/api/live?rows=0', position, {
    onMessage: due,
    onState: (state) => {
      if (state === 'lost') due();
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

/** Replaces the parts of the page that changed. Keeps the focus and the scroll position. */
function replaceContent(now: Element, next: Element, page: Document): void {
  replaceChanged(document.querySelector('nav'), page.querySelector('nav'));
  const [old, fresh] = [[...now.children], [...next.children]].map((all) =>
    all.filter((one) => !one.matches('.banner, .heading')),
  );
  for (const [i, element] of (fresh ?? []).entries()) {
    const former = old?.[i];
    if (former === undefined) {
      const added = document.adoptNode(element);
      now.append(added);
      prepareContent(added);
    } else replaceChanged(former, element);
  }
  for (const former of old?.slice(fresh?.length ?? 0) ?? []) former.remove();
  updateAges(now);
}

/** Replaces an element that changed. The script of the map draws the map itself. */
function replaceChanged(now: Element | null, next: Element | null): void {
  if (now?.matches('.map')) return;
  if (now === null || next === null || withoutAges(now) === withoutAges(next)) return;
  const isLeaf = now.children.length !== next.children.length || now.tagName !== next.tagName;
  if (!isLeaf && now.matches('.grid, .span, .health')) {
    // A copy: a part that is moved to this page leaves the list.
    const others = [...next.children];
    for (const [i, child] of [...now.children].entries()) replaceChanged(child, others[i] ?? null);
    if (now.className !== next.className) now.className = next.className;
    return;
  }
  const focused = now.contains(document.activeElement) ? document.activeElement : null;
  if (focused !== null && isTyping(focused)) return;
  const scrolled = [...now.querySelectorAll('.scroll')].map(({ scrollLeft }) => scrollLeft);
  const opened = [...now.querySelectorAll('details')].map(({ open }) => open);
  const fresh = document.adoptNode(next);
  const same = focused === null ? null : sameElement(focused, now, fresh);
  const wasSelected = now.querySelector('[aria-selected="true"], [data-row].selected') !== null;
  now.replaceWith(fresh);
  prepareContent(fresh);
  for (const [i, area] of fresh.querySelectorAll('.scroll').entries())
    area.scrollLeft = scrolled[i] ?? 0;
  for (const [i, details] of fresh.querySelectorAll('details').entries())
    details.open = opened[i] ?? details.open;
  same?.focus({ preventScroll: true });
  const row = same?.closest(listRows);
  if (wasSelected && row) select(row, true);
}

/** Returns the element of new content that corresponds to one of the former: the same link, or the same place. */
function sameElement(former: Element, root: Element, fresh: Element): HTMLElement | null {
  const href = former.getAttribute('href');
  if (href !== null) return fresh.querySelector<HTMLElement>(`a[href="${CSS.escape(href)}"]`);
  const path: number[] = [];
  for (let one: Element = former; one !== root && one.parentElement !== null; ) {
    path.unshift([...one.parentElement.children].indexOf(one));
    one = one.parentElement;
  }
  let found: Element | undefined = fresh;
  for (const i of path) found = found?.children[i];
  return found instanceof HTMLElement && found.tagName === former.tagName ? found : null;
}

/** Ages differ in each answer, and are updated in place; people open and close details. */
function withoutAges(element: Element): string {
  const copy = element.cloneNode(true);
  if (!(copy instanceof Element)) return '';
  for (const shown of copy.querySelectorAll('[data-age]')) shown.textContent = '';
  for (const button of copy.querySelectorAll('[data-copy]')) button.removeAttribute('hidden');
  for (const details of copy.querySelectorAll('details')) details.removeAttribute('open');
  return copy.outerHTML;
}

const problems = {
  lost: [
    'The receiver has not answered since',
    'If this stays, check that the receiver runs: `earshot status`',
  ],
  refused: [
    'No live data since',
    'The receiver has the maximum number of live streams: close another page that shows live data.',
  ],
  failed: [
    'The receiver cannot answer queries since',
    'If this stays, check the receiver and the index: `earshot status`, `earshot admin index`',
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
