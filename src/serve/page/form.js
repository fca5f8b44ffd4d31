// The form: what is generated, by which model and how.
import {element} from './image.js';
import * as source from './continue.js';

const MOST_SEED = 2n ** 64n - 1n;
const EXAMPLES = ['a lighthouse on a cliff at dusk, oil painting', 'a bowl of oranges on a wooden table', 'a red fox in fresh snow'];
const TEXTS = ['prompt', 'negative_prompt', 'temperature', 'cfg_scale', 'tree', 'lambda', 'seed'];
const byId = id => document.getElementById(id);
let models = [];

export const isReady = () => models.length > 0;
// Fills the form for the models of the server.
export function show(all) {
  models = all;
  byId('model').replaceChildren(...models.map(m => option(m.id)));
  byId('model-label').hidden = models.length < 2;
  byId('about').textContent = models.length === 1 ? models[0].id : '';
  showModel();
}
export const model = () => models.find(m => m.id === byId('model').value) ?? models[0];
const option = value => element('option', {value, textContent: value});

function showMethod() {
  const method = byId('method').value, settings = model().settings[method] ?? {};
  byId('meaning').textContent = model().meanings[method] ?? '';
  for (const name of ['tree', 'lambda']) {
    byId(name + '-field').hidden = !(name in settings);
    const value = settings[name] ?? '';
    byId(name).placeholder = value === 'bundle' ? "the model's" : [value].flat().join(', ');
  }
}
function showExamples() {
  const one = model(), wanted = one.prompt !== 'class' && !byId('prompt').value;
  const texts = one.examples.length ? one.examples : EXAMPLES;
  byId('examples').hidden = !wanted;
  byId('examples').replaceChildren(...texts.map(text => {
    const button = element('button', {type: 'button', textContent: text});
    button.onclick = () => { byId('prompt').value = text; showExamples(); byId('prompt').focus(); };
    return button;
  }));
}
function showModel() {
  const one = model();
  byId('method').replaceChildren(...one.methods.map(option));
  byId('method').value = one.methods.includes(one.method) ? one.method : one.methods[0];
  byId('size').replaceChildren(...one.sizes.map(option));
  byId('trees').replaceChildren(...one.trees.map(option));
  byId('count').max = byId('candidates').max = one.most_images;
  byId('prompt-label').textContent = one.prompt === 'class' ? 'Class' : 'Prompt';
  byId('prompt').placeholder = one.prompt === 'class' ? 'a number' : one.example || 'what the image shows';
  byId('negative-label').hidden = one.negative_prompt === null;
  byId('negative_prompt').placeholder = one.negative_prompt ?? '';
  showMethod();
  showExamples();
  showSize();
}
export const grid = () => model().grids[model().sizes.indexOf(byId('size').value)];
// An image of one row of tokens has none below a line.
export function showSize() {
  const size = byId('size').value, [width, height] = size.split('x').map(Number), cells = grid();
  source.fit(model().image_encoder && cells.rows > 1 ? {size, width, height, ...cells} : null);
  byId('result').classList.toggle('continues', model().image_encoder);
}
function seed() {
  const text = byId('seed').value.trim();
  if (!text || text === '-1') return String(crypto.getRandomValues(new Uint32Array(1))[0]);
  if (!/^\d+$/.test(text) || BigInt(text) > MOST_SEED) throw new Error(`the seed is ${text}, expected a whole number up to ${MOST_SEED}`);
  return text;
}
function numbers(text) {
  return text.split(/[\s,;/]+/).filter(Boolean).map(Number);
}
// The request of the form.
export function wanted() {
  const one = model(), prompt = byId('prompt').value.trim() || (one.prompt === 'class' ? '0' : one.example);
  if (!prompt) throw new Error('write a prompt first');
  const request = {model: one.id, method: byId('method').value, size: byId('size').value, seed: seed(), n: Number(byId('count').value)};
  if (one.prompt === 'class') request.class = Number(prompt); else request.prompt = prompt;
  const negative = byId('negative_prompt').value.trim();
  if (negative && one.negative_prompt !== null) request.negative_prompt = negative;
  for (const name of ['temperature', 'cfg_scale']) if (byId(name).value) request[name] = Number(byId(name).value);
  if (!byId('tree-field').hidden && byId('tree').value) request.tree = byId('tree').value.trim();
  if (!byId('lambda-field').hidden && byId('lambda').value) request.lambda = numbers(byId('lambda').value);
  return request;
}
// Fills the form with the request of an earlier image.
export function restore(request) {
  if (models.some(m => m.id === request.model)) byId('model').value = request.model;
  showModel();
  for (const name of TEXTS) byId(name).value = request[name] ?? '';
  if (request.class !== undefined) byId('prompt').value = request.class;
  if (request.lambda) byId('lambda').value = request.lambda.join(', ');
  for (const name of ['method', 'size'])
    if ([...byId(name).options].some(o => o.value === request[name])) byId(name).value = request[name];
  byId('count').value = 1;
  showMethod();
  showExamples();
  showSize();
}

byId('prompt').oninput = () => models.length && showExamples();
byId('model').onchange = showModel;
byId('method').onchange = showMethod;
byId('size').onchange = showSize;
