/** Keyboard shortcuts of every page, and the list of them. */

interface Storage {
  get(name: string): string | null;
  set(name: string, value: string): void;
}

/** Keys: `g` and a letter opens a page, `/` focuses the search, `j` `k` `o` move in lists, `?` lists all. */
export function addKeyboard(storage: Storage): void {
  const dialog = document.querySelector('dialog');
  const choice = dialog?.querySelector('input') ?? null;
  if (dialog === null || choice === null) return;
  const help = document.querySelector<HTMLElement>('[data-help-button]');
  help?.addEventListener('click', () => dialog.showModal());
  choice.checked = storage.get('shortcuts') !== 'off';
  choice.addEventListener('change', () => storage.set('shortcuts', choice.checked ? 'on' : 'off'));
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

/** Creates an element with a text. */
export function element(name: string, text: string): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
