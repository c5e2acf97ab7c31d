/**
 * `npm run picture`: writes docs/demo.svg, the picture of the README. Runs the demo in a terminal
 * (`script` of Debian's bsdutils), stops it when the missing hour is fetched, and draws parts of its output.
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const columns = 100;
const timeoutMs = 120_000;
/** Printed when the missing hour is fetched. */
const last = 'comparison found';
/** Texts in the first lines of the paragraphs to draw. */
const drawn = [
  ...['earshot demo', 'simulated past day', 'delay  product', '$ earshot query', last],
  'notifications stored',
];

/** @returns {Promise<string>} the output of the demo, stopped with Ctrl-C when the missing hour is fetched. */
function runDemo() {
  const command = `stty cols ${columns} rows 50 -echo; PATH=$PWD:$PATH earshot demo --seed 3`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const deadline = setTimeout(() => child.kill(), timeoutMs);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    const before = output.includes(last);
    output += text;
    if (!before && output.includes(last)) {
      setTimeout(() => child.stdin.write('\x03'), 1500);
    }
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => {
      clearTimeout(deadline);
      resolve(output.replaceAll('\r', ''));
    });
  });
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character starts a style.
const sgr = /\u001b\[(\d+)m/g;

/** @param {string} text */
const withoutStyle = (text) => text.replaceAll(sgr, '');

/** @param {string} output */
function chosenLines(output) {
  const paragraphs = output.split('\n\n').filter((paragraph) => {
    const [first = ''] = withoutStyle(paragraph).split('\n');
    return drawn.some((text) => first.includes(text));
  });
  const [intro = '', ...rest] = paragraphs;
  const text = [`\x1b[1m$ npm run demo\x1b[22m\n${intro.split('\n')[0]}`, ...rest].join('\n\n');
  return text.split('\n');
}

const [cellWidth, lineHeight, margin] = [7.8, 18, 18];
/** Codes of ANSI styles (ECMA-48, SGR) to attributes; 22 and 39 end them. */
const styles = /** @type {Record<string, string>} */ ({
  1: 'font-weight="bold"',
  2: 'opacity=".6"',
  31: 'fill="#ff7b72"',
  32: 'fill="#7ee787"',
  33: 'fill="#e3b341"',
  36: 'fill="#79c0ff"',
});

/** @param {string} text */
const escaped = (text) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    // Browsers collapse repeated spaces.
    .replaceAll('  ', '\u00a0\u00a0');

/** @param {string} line @param {number} row */
function drawLine(line, row) {
  const y = margin + 34 + row * lineHeight;
  let [column, style] = [0, ''];
  const runs = line.split(sgr).map((part, index) => {
    if (index % 2 === 1) {
      style = styles[part] ?? '';
      return '';
    }
    const text = part.trim();
    const x = margin + (column + part.indexOf(text)) * cellWidth;
    column += part.length;
    if (text === '') return '';
    const length = text.length * cellWidth;
    return `<text x="${x.toFixed(1)}" y="${y}" textLength="${length.toFixed(1)}" ${style}>${escaped(text)}</text>`;
  });
  return runs.join('');
}

/** @param {string[]} lines */
function draw(lines) {
  const longest = Math.max(columns, ...lines.map((line) => withoutStyle(line).length));
  const width = Math.round(margin * 2 + longest * cellWidth);
  const height = margin * 2 + 30 + lines.length * lineHeight;
  const buttons = ['#ff5f57', '#febc2e', '#28c840'].map(
    (colour, index) => `<circle cx="${24 + index * 20}" cy="20" r="6" fill="${colour}"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="The earshot demo on a terminal">
<rect width="${width}" height="${height}" rx="10" fill="#0d1117"/>
${buttons.join('')}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="#e6edf3">
${lines.map(drawLine).join('\n')}
</g>
</svg>
`;
}

const lines = chosenLines((await runDemo()).trimEnd());
if (lines.length < 10) throw new Error(`Too little output of the demo:\n${lines.join('\n')}`);
writeFileSync(new URL('../docs/demo.svg', import.meta.url), draw(lines));
