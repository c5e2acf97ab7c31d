/** The filter box: findings and completions while typing. Enter never accepts a completion; Ctrl+Enter runs. */
import { type ComponentChild, h, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { submitState } from './shell.ts';
import { addressOf } from './stream.ts';

interface Finding {
  severity: 'error' | 'warning';
  message: string;
  expected: string | null;
  hint: string | null;
  start: number;
  end: number;
  excerpt: { before: string; marked: string; after: string };
}

interface Completion {
  label: string;
  detail: string;
  text: string;
  start: number;
  end: number;
  caret: number;
}

interface Checked {
  /** Null before the first check: the findings of the server are shown. */
  findings: Finding[] | null;
  completions: Completion[];
  /** Why the filter could not be checked. */
  failure: string | null;
}

/** Index of the chosen completion; -1 for none. Null: the list is closed. */
type Chosen = number | null;

/** Time without typing before a check. */
const pauseMs = 200;

/** Findings shown at once. */
const shownMax = 20;

/** The search to which the page of a product leads back; without it, that page leads to all products. */
const searchItem = 'search';

const form = document.querySelector<HTMLFormElement>('[data-filter-form]');
const field = document.querySelector<HTMLTextAreaElement>('#filter');
const findingsPlace = document.getElementById('filter-findings');
const listPlace = document.getElementById('filter-completions');
if (form !== null && field !== null && findingsPlace !== null && listPlace !== null) {
  document.getElementById('filter-keys')?.removeAttribute('hidden');
  field.setAttribute('aria-autocomplete', 'list');
  field.setAttribute('aria-haspopup', 'listbox');
  field.setAttribute('aria-controls', 'completion-list');
  addSubmit(form);
  addChanges(form);
  render(h(FilterField, { form, field, findingsPlace }), listPlace);
}

keepSearch();

/** Pages send no referrer, so that the tab remembers the search. */
function keepSearch(): void {
  try {
    if (form !== null) sessionStorage.setItem(searchItem, location.search);
    const back = document.querySelector<HTMLAnchorElement>('a[data-back]');
    if (back !== null) back.search = sessionStorage.getItem(searchItem) ?? '';
  } catch {
    // The browser blocks storage.
  }
}

/** Sends the form without its empty fields; choices are sent at once. */
function addSubmit(target: HTMLFormElement): void {
  target.addEventListener('submit', (event) => {
    event.preventDefault();
    submitState(target);
  });
  target.addEventListener('change', ({ target: changed }) => {
    if (changed instanceof Element && changed.matches('select, [type=checkbox]')) {
      submitState(target);
    }
  });
}

/**
 * Sends the form in place of a link that changes the filter, if something is typed but not run. The server adds the
 * condition to the typed filter, or removes it.
 */
function addChanges(target: HTMLFormElement): void {
  document.addEventListener('click', (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || !isEdited(target)) return;
    const link = (event.target as Element).closest<HTMLElement>('a[data-change], a[data-drop]');
    if (link === null) return;
    event.preventDefault();
    const { change, condition = '', drop = '' } = link.dataset;
    for (const name of drop.split(' ')) {
      target.querySelector(`input[type="hidden"][name="${CSS.escape(name)}"]`)?.remove();
    }
    if (change !== undefined) {
      const added = document.createElement('input');
      added.type = 'hidden';
      [added.name, added.value] = [change, condition];
      target.append(added);
    }
    submitState(target);
  });
}

function isEdited(target: HTMLFormElement): boolean {
  const fields = target.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>(
    'textarea, input[name="name"], input[name="bbox"]',
  );
  return [...fields].some(({ value, defaultValue }) => value !== defaultValue);
}

interface Parts {
  form: HTMLFormElement;
  field: HTMLTextAreaElement;
  findingsPlace: HTMLElement;
}

function FilterField({ form, field, findingsPlace }: Parts): ComponentChild {
  const [checked, setChecked] = useState<Checked>({
    findings: null,
    completions: [],
    failure: null,
  });
  const [chosen, choose] = useState<Chosen>(null);
  const now = useRef({ checked, chosen });
  now.current = { checked, chosen };
  useEffect(() => {
    const check = createCheck(field, (answer) => {
      setChecked(answer);
      choose(firstChoice(field, answer.completions));
    });
    const onKey = (event: KeyboardEvent) => {
      const { completions } = now.current.checked;
      const action = keyAction(event, completions, now.current.chosen);
      if (action === null) return;
      event.preventDefault();
      if (action === 'submit') form.requestSubmit();
      else if (action === 'open') check(0);
      else if (action === 'leave') field.blur();
      else if (action === 'accept') accept(field, completions[now.current.chosen ?? -1]);
      else choose(action.choose);
    };
    const onInput = () => {
      choose(null);
      check(pauseMs);
    };
    const close = () => choose(null);
    field.addEventListener('input', onInput);
    field.addEventListener('keydown', onKey);
    field.addEventListener('blur', close);
    field.addEventListener('pointerdown', close);
  }, []);
  useEffect(() => {
    if (checked.findings === null && checked.failure === null) return;
    findingsPlace.setAttribute('role', 'status');
    if (!findingsPlace.hasAttribute('data-live')) {
      findingsPlace.setAttribute('data-live', '');
      findingsPlace.replaceChildren();
    }
    render(h(Findings, { checked, field }), findingsPlace);
  }, [checked]);
  useEffect(() => {
    const option = document.getElementById(`completion-${chosen}`);
    option?.scrollIntoView({ block: 'nearest' });
    if (option === null) field.removeAttribute('aria-activedescendant');
    else field.setAttribute('aria-activedescendant', option.id);
  }, [chosen, checked]);
  return listOf(checked.completions, chosen, (one) => accept(field, one));
}

/** Returns a function that checks the filter after a pause. A later call replaces an earlier one. */
function createCheck(
  field: HTMLTextAreaElement,
  onAnswer: (answer: Checked) => void,
): (waitMs: number) => void {
  let timer = 0;
  let request = new AbortController();
  return (waitMs) => {
    clearTimeout(timer);
    request.abort();
    timer = setTimeout(async () => {
      request = new AbortController();
      const { signal } = request;
      const answer = await checkedFilter(field, signal);
      if (!signal.aborted) onAnswer(answer);
    }, waitMs);
  };
}

async function checkedFilter(field: HTMLTextAreaElement, signal: AbortSignal): Promise<Checked> {
  const isDeleted = field.form?.querySelector<HTMLInputElement>('[name=deleted]')?.checked;
  const search = new URLSearchParams({
    filter: field.value,
    entity: isDeleted ? 'DeletedProducts' : 'Products',
    position: String(field.selectionStart),
  });
  const failed = (failure: string) => ({ findings: null, completions: [], failure });
  try {
    const response = await fetch(addressOf(`/api/filter/check?${search}`), { signal });
    // A header of a request is limited, so a long filter is checked when it runs.
    if (response.status === 431)
      return failed('The filter is too long to be checked while typing.');
    if (!response.ok)
      return failed('The filter cannot be checked now. It is checked when it runs.');
    const { findings, completions } = await response.json();
    const shown = field.value.trim() === '' ? [] : findings;
    return { findings: shown, completions, failure: null };
  } catch {
    return failed('The receiver does not answer. Check that it runs: `earshot status`');
  }
}

/** The first completion is chosen if a word was begun: otherwise Tab moves to the next control. */
function firstChoice(field: HTMLTextAreaElement, completions: readonly Completion[]): Chosen {
  const [first] = completions;
  if (first === undefined || document.activeElement !== field) return null;
  return first.start < field.selectionStart ? 0 : -1;
}

type Action = 'submit' | 'open' | 'leave' | 'accept' | { choose: Chosen } | null;

/** Enter alone is never an action: it writes a line break. */
function keyAction(
  { key, ctrlKey, metaKey, shiftKey, isComposing }: KeyboardEvent,
  completions: readonly Completion[],
  chosen: Chosen,
): Action {
  if (isComposing) return null;
  if (key === 'Enter') return ctrlKey || metaKey ? 'submit' : null;
  if (key === ' ' && ctrlKey) return 'open';
  if (chosen === null || completions.length === 0) return key === 'Escape' ? 'leave' : null;
  const { length } = completions;
  if (key === 'ArrowDown') return { choose: (chosen + 1) % length };
  if (key === 'ArrowUp') return { choose: (Math.max(chosen, 0) + length - 1) % length };
  if (key === 'Escape') return { choose: null };
  return key === 'Tab' && !shiftKey && chosen >= 0 ? 'accept' : null;
}

/** Replaces the word at the cursor as if it was typed, so that the browser can undo it. */
function accept(field: HTMLTextAreaElement, completion: Completion | undefined): void {
  if (completion === undefined) return;
  const { text, start, end, caret } = completion;
  field.focus();
  field.setSelectionRange(start, end);
  if (!document.execCommand('insertText', false, text)) {
    field.setRangeText(text, start, end, 'end');
    field.dispatchEvent(new Event('input'));
  }
  field.setSelectionRange(start + caret, start + caret);
}

function listOf(
  completions: readonly Completion[],
  chosen: Chosen,
  onAccept: (completion: Completion) => void,
): ComponentChild {
  const isOpen = chosen !== null && completions.length > 0;
  const announced = isOpen ? `${completions.length} completions` : '';
  return [
    h('p', { class: 'visually-hidden', role: 'status' }, announced),
    h(
      'ul',
      {
        id: 'completion-list',
        class: 'completions',
        role: 'listbox',
        'aria-label': 'Completions',
        hidden: !isOpen,
      },
      isOpen &&
        completions.map((one, i) =>
          h(
            'li',
            {
              id: `completion-${i}`,
              key: one.label,
              role: 'option',
              'aria-selected': i === chosen,
              // The box keeps the focus.
              onMouseDown: (event: MouseEvent) => {
                event.preventDefault();
                onAccept(one);
              },
            },
            h('span', { class: 'label' }, one.label),
            h('span', { class: 'dim' }, one.detail),
          ),
        ),
    ),
  ];
}

/** The server renders the same (filter-panel.ts). */
function Findings({ checked, field }: { checked: Checked; field: HTMLTextAreaElement }) {
  const { findings, failure } = checked;
  if (failure !== null) return h('p', { class: 'note' }, withCode(failure));
  return h(
    'ul',
    { class: 'plain findings' },
    (findings ?? []).slice(0, shownMax).map((one) => findingOf(one, field)),
  );
}

function findingOf(
  { severity, message, expected, hint, start, end, excerpt }: Finding,
  field: HTMLTextAreaElement,
): ComponentChild {
  const { before, marked, after } = excerpt;
  const tone = severity === 'error' ? 'bad' : 'warn';
  const select = () => {
    field.focus();
    field.setSelectionRange(start, Math.max(start, end));
  };
  const mark = h('mark', null, marked === '' ? ' ' : marked);
  const show = { type: 'button', class: 'excerpt', title: 'Select this place', onClick: select };
  return h(
    'li',
    null,
    h('span', { class: `badge ${tone}` }, severity),
    h('span', null, withCode(message)),
    h('button', show, before, mark, after),
    expected !== null && h('span', null, 'Expected: ', withCode(expected)),
    hint !== null && h('span', null, withCode(hint)),
  );
}

/** Renders code that stands in backquotes. */
function withCode(text: string): ComponentChild {
  return text.split('`').map((part, i) => (i % 2 === 1 ? h('code', null, part) : part));
}
