// One image: how it grows, its clock, and what can be done with it.
import {generated} from './region.js';

const SCALE = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37]];

export const seconds = value => value.toFixed(2) + ' s';

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key in made) made[key] = value; else made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// The colour of a token by the number of tokens that its pass committed.
export function colour(committed, most) {
  const position = most > 1 ? (committed - 1) / (most - 1) * (SCALE.length - 1) : 0;
  const low = Math.floor(position), high = Math.min(low + 1, SCALE.length - 1);
  return 'rgb(' + SCALE[low].map((c, i) => Math.round(c + (SCALE[high][i] - c) * (position - low))).join(',') + ')';
}

const blobOf = base64 => new Blob([Uint8Array.from(atob(base64), c => c.charCodeAt(0))], {type: 'image/png'});

// navigator.clipboard is missing where a page comes over plain HTTP from another machine.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = element('textarea', {value: text}), focused = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  focused?.focus();
  if (!done) throw new Error('this browser does not let the page copy');
}

function fileName(request, seed) {
  const words = (request.prompt ?? 'class ' + request.class).toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ['image'];
  return words.join('-').slice(0, 60) + '-' + seed + '.png';
}

export class ImageView {
  // onColours: called when the colours of passes come, go or change. onContinue: called with the view of whose image the next
  // one keeps a part. say: shows a message.
  constructor(request, {columns, rows}, {onColours, onContinue, say}) {
    Object.assign(this, {request, columns, rows, spans: generated(request, {columns, rows}), onColours, say, time: 0, committed: [],
      moments: [], inOrder: true, coloured: false, shown: 0, done: null, blob: null, coloursWanted: false, most: 1});
    const [width, height] = request.size.split('x').map(Number);
    this.words = request.prompt ?? 'class ' + request.class;
    this.canvas = element('canvas', {width, height, role: 'img', 'aria-label': 'The image while it grows: ' + this.words});
    this.passes = element('canvas', {className: 'passes', width: columns, height: rows, hidden: true, 'aria-hidden': 'true'});
    this.image = element('img', {hidden: true, alt: this.words, width, height});
    this.clock = element('span', {className: 'clock', textContent: seconds(0)});
    this.facts = element('small');
    this.download = element('a', {className: 'button', textContent: 'Download'});
    this.copying = element('button', {type: 'button', textContent: 'Copy settings'});
    this.switch = element('button', {type: 'button', textContent: 'Tokens per pass', 'aria-pressed': 'false'});
    const continuing = element('button', {type: 'button', className: 'continue', textContent: 'Continue or change'});
    this.tools = element('div', {className: 'actions', hidden: true}, this.download, this.copying, continuing, this.switch);
    continuing.onclick = () => onContinue(this);
    this.copying.onclick = () => copy(JSON.stringify(this.settings(), null, 2))
      .then(() => say('the settings are copied'), error => say(error.message, true));
    this.switch.onclick = () => this.showColours(!this.coloursWanted);
    this.figure = element('figure', {},
      element('div', {className: 'image'}, this.canvas, this.image, this.passes),
      element('figcaption', {}, element('span', {}, element('b', {textContent: request.method}), this.facts), this.clock), this.tools);
  }
  settings() {
    const seed = this.done?.seed ?? this.request.seed;
    const {image, image_name, ...rest} = this.request;
    return {...rest, ...(image && {image: image_name}), seed, n: 1};
  }
  showColours(wanted) {
    this.coloursWanted = wanted;
    this.passes.hidden = !(wanted && this.coloured);
    this.switch.setAttribute('aria-pressed', String(wanted));
    this.onColours();
  }
  // The counts of raster order say where every token of a pass lies. Image rows that are generated side by side have no
  // raster order, and for continuous tokens no counts come.
  paintPasses(committed, most) {
    const context = this.passes.getContext('2d'), cells = [1];
    for (const count of committed) for (let i = 0; i < count; i++) cells.push(count);
    context.clearRect(0, 0, this.columns, this.rows);
    this.coloured = this.inOrder && committed.length > 0;
    this.most = most;
    if (this.coloured) {
      let i = 0;
      for (const {row, left, right} of this.spans) {
        for (let column = left; column < right && i < cells.length; column++) {
          context.fillStyle = colour(cells[i++], most);
          context.fillRect(column, row, 1, 1);
        }
      }
    }
    this.switch.hidden = !this.coloured;
    this.passes.hidden = !(this.coloursWanted && this.coloured);
  }
  // Draws an image without what is generated from an image row on.
  paintUpTo(rows, source) {
    const {width, height} = this.canvas, context = this.canvas.getContext('2d'), x = width / this.columns, y = height / this.rows;
    context.clearRect(0, 0, width, height);
    context.drawImage(source, 0, 0, width, height);
    for (const {row, left, right} of this.spans) if (row >= rows) context.clearRect(left * x, row * y, (right - left) * x, y);
  }
  // What stays of another image, before the first rows of this one come.
  showKept(source) {
    if (this.request.image) this.paintUpTo(0, source);
  }
  mostCommitted() { return Math.max(1, ...this.committed); }
  // The rows of the finished image that were there at a time.
  paintAt(time, most) {
    const moment = this.moments.filter(m => m.time <= time).at(-1) ?? {rows: 0, committed: []};
    const running = time < this.time;
    this.image.hidden = running;
    this.canvas.hidden = !running;
    this.paintUpTo(moment.rows, this.image);
    this.paintPasses(moment.committed, most);
    this.clock.textContent = seconds(Math.min(time, this.time));
  }
  async take(event, time) {
    const kind = event.type.split('.')[1];
    if (kind === 'progress') {
      this.committed = this.committed.concat(event.committed);
      this.inOrder = event.in_order;
      this.moments.push({time, rows: event.rows, committed: this.committed});
      this.paintPasses(this.committed, this.mostCommitted());
      this.onColours();
    } else if (kind === 'partial_image') {
      const {rows} = this.moments.at(-1);
      const part = await createImageBitmap(blobOf(event.b64_json));
      if (this.done) return;
      this.shown = rows;
      this.paintUpTo(rows, part);
    } else if (kind === 'completed') {
      const {b64_json, ...facts} = event;
      await this.finish(facts, blobOf(b64_json));
    }
  }
  async finish(facts, blob) {
    this.done = facts;
    this.blob = blob;
    this.time = facts.seconds;
    for (const moment of this.moments) moment.time = Math.min(moment.time, this.time);
    this.moments.push({time: this.time, rows: this.rows, committed: this.committed});
    this.image.src = this.download.href = URL.createObjectURL(blob);
    this.download.download = fileName(this.request, facts.seed);
    await this.image.decode();
    this.image.hidden = false;
    this.canvas.hidden = true;
    this.clock.textContent = seconds(this.time);
    this.facts.textContent = `${facts.tokens} tokens in ${facts.target_passes} ${facts.target_passes === 1 ? 'pass' : 'passes'}, ${facts.step_compression.toFixed(2)} a pass, seed ${facts.seed}` +
      (facts.candidates ? `, candidate ${facts.picked + 1} of ${facts.candidates}` : '');
    this.tools.hidden = false;
    this.paintPasses(this.committed, this.mostCommitted());
    this.showColours(false);
  }
  // Nothing more comes. False where nothing has come that could be shown: tokens may have come for more rows than are shown.
  end() {
    if (this.done) return true;
    this.facts.textContent = this.shown ? `incomplete: ${this.shown} of ${this.rows} rows` : 'incomplete';
    this.canvas.setAttribute('aria-label', 'An image that is not complete: ' + this.words);
    this.showColours(false);
    return this.shown > 0;
  }
  tick(time) {
    if (!this.done) this.clock.textContent = seconds(time);
  }
  release() {
    if (this.image.src) URL.revokeObjectURL(this.image.src);
  }
}
