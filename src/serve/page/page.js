import {ImageView, colour, element, seconds} from './image.js';
import * as form from './form.js';
import * as source from './continue.js';
import * as server from './server.js';
import * as past from './history.js';

const PARTIAL = 8;  // images of the rows so far, of one that grows
const SLOWEST = 4;  // seconds that a race takes at least when it is shown again
const TIE = 0.02;  // times that differ by less are equal
const byId = id => document.getElementById(id);
let abort = null, shown = [], race = 0, raced = false;

function say(text, bad = false) {
  byId('message').textContent = text;
  byId('message').className = bad ? 'bad' : '';
  byId('message').setAttribute('role', bad ? 'alert' : 'status');
  if (bad) byId('message').scrollIntoView({block: 'nearest'});  // in a narrow window it lies below the form
}

// A disabled button would lose the focus: whoever works with keys would start again at the top of the page.
function allow(id, allowed) {
  byId(id).setAttribute('aria-disabled', String(!allowed));
}

// The image of which a part stays.
async function takeImage(file, name, options) {
  if (!form.isReady()) return;
  if (!source.isPossible()) {
    const why = form.model().image_encoder ? 'an image of this size has one row of tokens' : 'its bundle has no image encoder';
    return say(`${form.model().id} cannot continue images: ${why}`, true);
  }
  try {
    await source.take(file, name, options);
    say(source.words());
  } catch (error) {
    say(error.message, true);
  }
}
async function continueImage({request, blob, canvas}) {
  const size = `${canvas.width}x${canvas.height}`;
  if ([...byId('size').options].some(o => o.value === size)) byId('size').value = size;
  form.showSize();
  await takeImage(blob, request.prompt ?? 'class ' + request.class, {png: blob});
  source.focus();
  byId('continue').scrollIntoView({block: 'nearest'});
}

// The images.
const CALLS = {onColours: () => showColours(), onContinue: view => continueImage(view), say};
function showColours() {
  const on = shown.filter(view => !view.passes.hidden);
  byId('legend').hidden = on.length === 0;
  const most = Math.max(1, ...on.map(view => view.most));
  byId('legend').replaceChildren(element('span', {textContent: 'tokens per pass: 1'}), ...Array.from({length: most}, (_, i) => {
    const field = element('i');
    field.style.background = colour(i + 1, most);
    return field;
  }), ...(most > 1 ? [element('span', {textContent: String(most)})] : []));
}
function present(list, isRace) {
  race++;
  for (const old of shown) if (!list.includes(old)) old.release();
  shown = list;
  raced = isRace;
  byId('empty').hidden = list.length > 0;
  byId('stage').className = list.length === 1 ? 'one' : '';
  byId('stage').replaceChildren(...list.map(view => view.figure));
  byId('again').hidden = true;
  byId('notes').hidden = true;
  showColours();
}
function showNotes() {
  const notes = [...new Set(shown.flatMap(view => view.done?.warnings ?? []))];
  byId('notes').hidden = notes.length === 0;
  byId('notes').replaceChildren(...notes.map(textContent => element('li', {textContent})));
}
// Clocks of the server: each image was generated alone.
function verdict([one, other]) {
  const [first, last] = one.time <= other.time ? [one, other] : [other, one];
  const ratio = last.time / first.time, times = `${seconds(first.time)} against ${seconds(last.time)}`;
  for (const view of [one, other]) view.figure.classList.toggle('won', view === first && ratio >= 1 + TIE);
  if (ratio < 1 + TIE) return `a tie: ${times}`;
  return `${first.request.method} won by ${seconds(last.time - first.time)}: ${times} for ${last.request.method}, ${ratio.toFixed(2)} times as fast`;
}
function summary() {
  if (raced) return verdict(shown);
  return shown.length === 1 ? 'done in ' + seconds(shown[0].time) : `${shown.length} images, generated side by side`;
}
function paintAll(time) {
  const most = Math.max(...shown.map(view => view.mostCommitted()));
  for (const view of shown) view.paintAt(time, most);
  showColours();
}
// Both images grow side by side as they were generated, on clocks that run more slowly where that was fast.
function runAgain() {
  const mine = ++race, last = Math.max(...shown.map(view => view.time)), slow = Math.max(1, SLOWEST / last), begin = performance.now();
  const colours = byId('colours').checked;
  for (const view of shown) view.showColours(colours);
  const frame = () => {
    if (mine !== race) return;
    const now = (performance.now() - begin) / 1000 / slow;
    paintAll(now);
    if (now < last) return requestAnimationFrame(frame);
    for (const view of shown) view.showColours(false);
  };
  requestAnimationFrame(frame);
}

// Earlier images.
async function showPast() {
  const entries = await past.list(), focused = byId('history').contains(document.activeElement) && document.activeElement.dataset.id;
  byId('past').hidden = entries.length === 0;
  for (const image of byId('history').querySelectorAll('img')) URL.revokeObjectURL(image.src);
  byId('history').replaceChildren(...entries.map(entry => {
    const {request} = entry, words = request.prompt ?? 'class ' + request.class;
    const button = element('button', {type: 'button', title: `${words}, ${request.method}, seed ${entry.facts.seed}`, 'aria-label': `${words}, ${request.method}, seed ${entry.facts.seed}: show it again`},
      element('img', {src: URL.createObjectURL(entry.blob), alt: '', loading: 'lazy'}), element('span', {textContent: words}),
      element('span', {textContent: `${request.method}, ${entry.facts.seed}`}));
    button.dataset.id = entry.id;
    button.onclick = () => recall(entry);
    return element('li', {}, button);
  }));
  if (focused) byId('history').querySelector(`[data-id="${focused}"]`)?.focus({preventScroll: true});
}
async function recall(entry) {
  if (abort) return;
  const view = new ImageView(entry.request, entry.grid, CALLS);
  Object.assign(view, {committed: entry.committed, inOrder: entry.inOrder});
  present([view], false);
  await view.finish(entry.facts, entry.blob);
  form.restore({...entry.request, seed: entry.facts.seed});
  const {image, image_name} = entry.request;
  source.remove();
  if (image && source.isPossible()) await takeImage(image, image_name, {png: image, request: entry.request});
  say('an earlier image; the form has its settings');
  showNotes();
}
async function keep(views) {
  for (const {request, columns, rows, done, committed, inOrder, blob} of views)
    await past.add({request: {...request, seed: done.seed, n: 1}, grid: {columns, rows}, facts: done, committed, inOrder, blob});
  await showPast();
}

// What has come stays when an image cannot be completed; an empty frame does not.
async function settle() {
  present(shown.filter(view => view.end()), false);
  showNotes();
  await keep(shown.filter(view => view.done));
}

async function run(request, views) {
  const begin = performance.now();
  const tick = setInterval(() => views.forEach(view => view.tick((performance.now() - begin) / 1000)), 40);
  try {
    await server.generate(request, byId('key').value, abort.signal, (event, time) => views[event.index].take(event, time));
  } finally {
    clearInterval(tick);
  }
}
function begun(controller) {
  abort = controller;
  allow('generate', !abort);
  allow('stop', abort);
}
async function generate() {
  begun(new AbortController());
  try {
    await generateAll({...form.wanted(), ...await source.fields()});
  } catch (error) {
    say(error.message, true);
  }
  begun(null);
}
async function generateAll(request) {
  const isRace = byId('compare').checked && request.method !== 'ar';
  const requests = isRace ? [{...request, n: 1}, {...request, n: 1, method: 'ar', tree: undefined, lambda: undefined}] : [request];
  const cells = form.grid();
  const partial_images = isRace ? 0 : Math.min(PARTIAL, cells.rows - 1);  // a race runs for the clocks alone
  const parts = requests.map(one => Array.from({length: one.n}, () => new ImageView(one, cells, CALLS)));
  present(parts.flat(), isRace);
  for (const view of shown) {
    view.coloursWanted = byId('colours').checked;
    view.showKept(byId('source'));
  }
  byId('result').scrollIntoView({block: 'nearest'});  // in a narrow window it lies below the form
  try {
    for (const [i, one] of requests.entries()) {
      say(`generating with ${one.method} ...`);
      await run({...one, partial_images}, parts[i]);
    }
    say(summary());
    showNotes();
    byId('again').hidden = !isRace;
    await keep(shown);
    if (isRace) runAgain();
  } catch (error) {
    await settle();
    say(error.name === 'AbortError' ? 'stopped' : error.message, error.name !== 'AbortError');
    if (error.status === 401) askForKey();
  }
}
function askForKey() {
  byId('key-label').hidden = false;
  byId('key').focus();
}
async function begin() {
  try {
    form.show(await server.models(byId('key').value));
    say('');
  } catch (error) {
    say(error.message, true);
    if (error.status === 401) askForKey();
  }
}

byId('form').onsubmit = event => { event.preventDefault(); if (!abort) form.isReady() ? generate() : begin(); };
for (const id of ['prompt', 'negative_prompt'])
  byId(id).onkeydown = event => { if (event.key === 'Enter' && !event.shiftKey) { event.preventDefault(); byId('form').requestSubmit(); } };
byId('stop').onclick = () => abort?.abort();
source.listen(file => takeImage(file, file.name), () => say(source.words()));
byId('remove').onclick = () => { source.remove(); byId('image').focus(); };
byId('colours').onchange = () => { for (const view of shown) if (!view.done) view.showColours(byId('colours').checked); };
byId('key').onchange = begin;
byId('again').onclick = runAgain;
byId('forget').onclick = async () => { await past.clear(); byId('prompt').focus(); await showPast(); };
begin();
showPast();
