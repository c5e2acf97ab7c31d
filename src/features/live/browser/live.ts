/** The button of the live list: pauses its updates, and counts the notifications since. An open row pauses them, too. */
import { element } from '../../../core/page/browser/shell.ts';
import type { Positions } from '../../../core/page/browser/stream.ts';

const countText = new Intl.NumberFormat('en-GB');
const main = document.querySelector<HTMLElement>('main[data-refresh]');
if (main !== null) addPauseButton(main);

function addPauseButton(content: HTMLElement): void {
  const button = element('button', '');
  let isPaused = false;
  let lastPosition = 0;
  const openRows = () => [
    ...content.querySelectorAll<HTMLDetailsElement>('[data-list] details[open]'),
  ];
  const show = () => {
    const isStopped = isPaused || openRows().length > 0;
    content.toggleAttribute('data-paused', isStopped);
    button.className = isStopped ? 'primary' : '';
    const count = lastPosition - Number.parseInt(content.dataset.refresh ?? '', 10);
    const waiting = count > 0 ? ` (${countText.format(count)} new)` : '';
    button.textContent = isStopped ? `Resume${waiting}` : 'Pause';
  };
  button.addEventListener('click', () => {
    isPaused = !content.hasAttribute('data-paused');
    for (const row of isPaused ? [] : openRows()) row.open = false;
    show();
  });
  // The event does not bubble.
  content.addEventListener('toggle', show, { capture: true });
  document.addEventListener('positions', (event) => {
    ({ lastPosition } = (event as CustomEvent<Positions>).detail);
    show();
  });
  show();
  content.querySelector('.heading')?.append(button);
}
