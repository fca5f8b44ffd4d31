// The image of which the next one keeps a part: what lies below a line is generated anew, or a rectangle.
import * as region from './region.js';

const byId = id => document.getElementById(id);
let given = null;  // {name, bitmap, png}: png is a file that the server reads, where there is one
let room = null;  // {size, width, height, columns, rows} of the next image; null where it cannot keep a part of another

export const isPossible = () => room !== null;
const line = () => byId('keep_rows');
const isRegion = () => byId('part-region').checked;
export const words = () => isRegion() ? 'the rectangle is generated anew' : 'what lies below the line is generated anew';
export const focus = () => (isRegion() ? byId('region-left') : line()).focus({preventScroll: true});

function showPart() {
  const byRegion = isRegion();
  byId('given').classList.toggle('by-region', byRegion);
  byId('below').hidden = byId('below').disabled = byId('line').hidden = byRegion;
  byId('region').hidden = byId('region').disabled = byId('box').hidden = !byRegion;
  byId('anew').style.clipPath = '';
  if (byRegion) {
    byId('anew').style.top = 0;
    region.fit(room);
  } else {
    showLine();
  }
}
function showLine() {
  const kept = Number(line().value), part = Math.round(100 * kept / room.rows);
  byId('kept').textContent = `${kept} of ${room.rows}, ${part}% of the image`;
  line().setAttribute('aria-valuetext', byId('kept').textContent);
  byId('line').style.top = byId('anew').style.top = 100 * kept / room.rows + '%';
}
function setLine(rows) {
  line().value = Math.min(Math.max(Math.round(rows), 1), room.rows - 1);
  if (!isRegion()) showLine();
}
// The middle of the image in the sides of the next one, on white where it is transparent, as the server does it.
function paint() {
  const {width, height} = room, {bitmap} = given, scale = Math.max(width / bitmap.width, height / bitmap.height);
  const canvas = Object.assign(byId('source'), {width, height}), context = canvas.getContext('2d');
  context.imageSmoothingQuality = 'high';
  context.fillStyle = '#fff';
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, (width - bitmap.width * scale) / 2, (height - bitmap.height * scale) / 2, bitmap.width * scale, bitmap.height * scale);
  canvas.setAttribute('aria-label', 'The image of which a part stays: ' + given.name);
}
const isFitted = () => given.bitmap.width === room.width && given.bitmap.height === room.height;
function show() {
  byId('continue').hidden = room === null;
  byId('given').hidden = given === null;
  byId('region').disabled = !room || !given || !isRegion();
  byId('image').hidden = byId('image-hint').hidden = given !== null;
  if (!room || !given) return;
  paint();
  byId('fitted').textContent = given.name + (isFitted() ? '' : `, fitted to ${room.size}`);
  showPart();
}
// Says what the next image is like. The line stays where it is in the image.
export function fit(next) {
  const part = room ? Number(line().value) / room.rows : 0.5;
  room = next;
  if (room) {
    line().max = room.rows - 1;
    setLine(part * room.rows);
  }
  show();
}
// Takes a file of any format that the browser reads. `request`: an earlier one, whose line or rectangle it gets; by itself it
// gets them in the middle.
export async function take(file, name, {png = null, request} = {}) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${name}: this browser cannot read it as an image, expected a PNG, JPEG or WebP file`);
  }
  const focused = document.activeElement === byId('image');
  given?.bitmap.close();
  given = {name, bitmap, png};
  if (request) byId(request.region ? 'part-region' : 'part-below').checked = true;
  if (room) {
    setLine(request?.keep_rows ?? room.rows / 2);
    region.fit(room);
    region.restore(request);
  }
  show();
  if (focused) focus();
}
export function remove() {
  given?.bitmap.close();
  given = null;
  byId('image').value = '';
  show();
}
// The fields of a request that keeps a part of the image, and none without one. A canvas makes a PNG file of every image.
export async function fields() {
  if (!room || !given) return {};
  const canvas = byId('source');
  const image = given.png && isFitted() ? given.png : await new Promise(done => canvas.toBlob(done, 'image/png'));
  if (!image) throw new Error(`${given.name}: this browser cannot make a PNG file of it`);
  return {image, image_name: given.name, ...(isRegion() ? region.fields() : {keep_rows: Number(line().value)})};
}

const hasFile = event => event.dataTransfer.types.includes('Files');
const markDrop = wanted => document.body.classList.toggle('dropping', wanted);
// Calls onFile with every file that is chosen, or dropped on the page, and onPart for another part of the image.
export function listen(onFile, onPart) {
  const first = ([file]) => { if (file) onFile(file); };
  byId('image').onchange = () => first(byId('image').files);
  byId('part-below').onchange = byId('part-region').onchange = () => { showPart(); onPart(); };
  document.ondragover = event => {
    if (!hasFile(event)) return;
    event.preventDefault();  // otherwise the browser leaves the page for the file
    markDrop(true);
  };
  document.ondragleave = event => { if (!event.relatedTarget) markDrop(false); };
  document.ondrop = event => {
    markDrop(false);
    if (!hasFile(event)) return;
    event.preventDefault();
    first(event.dataTransfer.files);
  };
}

// A finger that moves on the image scrolls the page; on the line or the rectangle, it moves them.
function follow(event) {
  const {top, height} = byId('frame').getBoundingClientRect();
  setLine((event.clientY - top) / height * room.rows);
}
const takes = event => isRegion() ? region.takes(event) : event.pointerType !== 'touch' || event.target === byId('line');
byId('keep_rows').oninput = showLine;
byId('frame').onclick = event => isRegion() ? region.click(event) : follow(event);
byId('frame').onpointerdown = event => {
  if (event.button !== 0 || !takes(event)) return;
  byId('frame').setPointerCapture(event.pointerId);
  event.preventDefault();  // selects nothing
  if (isRegion()) region.begin(event); else follow(event);
};
byId('frame').onpointermove = event => {
  if (byId('frame').hasPointerCapture(event.pointerId)) isRegion() ? region.move(event) : follow(event);
};
