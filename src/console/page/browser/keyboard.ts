/** Keyboard shortcuts of every page, and the list of them. */

interface Storage {
  get(name: string): string | null;
  set(name: string, value: string): void;
}

/** Keys: `g` and a letter opens a page, `/` focuses the search, `j` `k` `o` move in lists, `?` lists all. */
export function addKeyboard(storage: Storage): void {
  const help = document.querySelector<HTMLButtonElement>('[data-help-button]');
  const dialog = helpDialog(storage);
  if (help !== null) {
    help.hidden = false;
    help.addEventListener('click', () => dialog.showModal());
  }
  let afterG = Number.NEGATIVE_INFINITY;
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (storage.get('shortcuts') === 'off' || dialog.open) return;
    const isSecond = performance.now() - afterG < 1_500;
    afterG = Number.NEGATIVE_INFINITY;
    if (isSecond) {
      const link = document.querySelector<HTMLAnchorElement>(
        `nav [data-key="${CSS.escape(event.key)}"]`,
      );
      if (link === null) return;
      event.preventDefault();
      link.click();
    } else if (event.key === 'g') afterG = performance.now();
    else act(event, dialog);
  });
}

function act(event: KeyboardEvent, dialog: HTMLDialogElement): void {
  const actions: Readonly<Record<string, () => void>> = {
    '?': () => dialog.showModal(),
    '/': () => document.querySelector<HTMLElement>('[data-search]')?.focus(),
    j: () => moveInList(1),
    k: () => moveInList(-1),
    o: () => selectedRow()?.querySelector<HTMLElement>('a, button, summary')?.click(),
  };
  const action = actions[event.key];
  if (action === undefined) return;
  event.preventDefault();
  action();
}

export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
  );
}

/** Rows of lists: of tables, and items such as alerts. */
export const listRows = '[data-list] tbody > tr:not(.details), [data-row]';

const selectedRow = () =>
  document.querySelector<HTMLElement>('[data-list] [aria-selected="true"], [data-row].selected');

/** Selects a row. Only rows of tables have the attribute. */
export function select(row: Element, isSelected: boolean): void {
  if (row.matches('[data-row]')) row.classList.toggle('selected', isSelected);
  else if (isSelected) row.setAttribute('aria-selected', 'true');
  else row.removeAttribute('aria-selected');
}

function moveInList(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>(listRows)].filter(
    (row) => row.offsetParent !== null,
  );
  const now = selectedRow();
  const next = rows[now === null ? (step > 0 ? 0 : rows.length - 1) : rows.indexOf(now) + step];
  if (next === undefined) return;
  if (now !== null) select(now, false);
  select(next, true);
  next.querySelector<HTMLElement>('a, button, summary')?.focus({ preventScroll: true });
  next.scrollIntoView({ block: 'nearest' });
}

function helpDialog(storage: Storage): HTMLDialogElement {
  const dialog = document.createElement('dialog');
  const pages = [...document.querySelectorAll<HTMLAnchorElement>('nav [data-key]')].map(
    (link) => [`g ${link.dataset.key}`, `open ${link.firstChild?.textContent ?? ''}`] as const,
  );
  const keys = [
    ['?', 'show this list'],
    ['/', 'focus the search'],
    ['Ctrl+Enter', 'run the filter'],
    ['j k', 'next and previous row of a list'],
    ['o', 'open the row'],
    ...pages,
    ['← ↑ ↓ → + − 0', 'move or zoom the map, show all of it'],
    ['Enter Backspace', 'select on the map or finish a polygon, remove its last corner'],
    ['Escape', 'stop drawing on the map, or leave the filter'],
  ] as const;
  const list = element('dl', '');
  list.className = 'facts';
  for (const [key, text] of keys) {
    const name = element('dt', '');
    name.append(...key.split(' ').flatMap((one, i) => [i > 0 ? ' ' : '', element('kbd', one)]));
    list.append(name, element('dd', text));
  }
  const choice = document.createElement('input');
  Object.assign(choice, { type: 'checkbox', checked: storage.get('shortcuts') !== 'off' });
  choice.addEventListener('change', () => storage.set('shortcuts', choice.checked ? 'on' : 'off'));
  const label = element('label', ' Shortcuts are on');
  label.prepend(choice);
  const close = Object.assign(element('button', 'Close'), { autofocus: true });
  close.addEventListener('click', () => dialog.close());
  dialog.append(element('h2', 'Keyboard shortcuts'), list, label, close);
  return document.body.appendChild(dialog);
}

/** Creates an element with a text. */
export function element(name: string, text: string): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
