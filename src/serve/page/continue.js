// The image that the next one continues: what lies above a line stays, what lies below it is generated anew.
const byId = id => document.getElementById(id);
let given = null;  // {name, bitmap, png}: png is a file that the server reads, where there is one
let room = null;  // {size, width, height, rows} of the next image; null where it cannot continue another

export const isPossible = () => room !== null;
const line = () => byId('keep_rows');

function showLine() {
  const kept = Number(line().value), part = Math.round(100 * kept / room.rows);
  byId('kept').textContent = `${kept} of ${room.rows}, ${part}% of the image`;
  line().setAttribute('aria-valuetext', byId('kept').textContent);
  byId('line').style.top = byId('anew').style.top = 100 * kept / room.rows + '%';
}
function setLine(rows) {
  line().value = Math.min(Math.max(Math.round(rows), 1), room.rows - 1);
  showLine();
}
// The middle of the image in the sides of the next one, on white where it is transparent, as the server does it.
function paint() {
  const {width, height} = room, {bitmap} = given, scale = Math.max(width / bitmap.width, height / bitmap.height);
  const canvas = Object.assign(byId('source'), {width, height}), context = canvas.getContext('2d');
  context.imageSmoothingQuality = 'high';
  context.fillStyle = '#fff';
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, (width - bitmap.width * scale) / 2, (height - bitmap.height * scale) / 2, bitmap.width * scale, bitmap.height * scale);
  canvas.setAttribute('aria-label', 'The image to continue: ' + given.name);
}
const isFitted = () => given.bitmap.width === room.width && given.bitmap.height === room.height;
function show() {
  byId('continue').hidden = room === null;
  byId('given').hidden = given === null;
  byId('image').hidden = byId('image-hint').hidden = given !== null;
  if (!room || !given) return;
  paint();
  byId('fitted').textContent = given.name + (isFitted() ? '' : `, fitted to ${room.size}`);
  showLine();
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
// Takes a file of any format that the browser reads. `keep_rows`: where the line lies, by itself in the middle.
export async function take(file, name, {png = null, keep_rows} = {}) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${name}: this browser cannot read it as an image, expected a PNG, JPEG or WebP file`);
  }
  const focused = document.activeElement === byId('image');
  given?.bitmap.close();
  given = {name, bitmap, png};
  if (room) setLine(keep_rows ?? room.rows / 2);
  show();
  if (focused) line().focus();
}
export function remove() {
  given?.bitmap.close();
  given = null;
  byId('image').value = '';
  show();
}
// The fields of a request that continues the image, and none without one. A canvas makes a PNG file of every image.
export async function fields() {
  if (!room || !given) return {};
  const canvas = byId('source');
  const image = given.png && isFitted() ? given.png : await new Promise(done => canvas.toBlob(done, 'image/png'));
  if (!image) throw new Error(`${given.name}: this browser cannot make a PNG file of it`);
  return {image, image_name: given.name, keep_rows: Number(line().value)};
}

const hasFile = event => event.dataTransfer.types.includes('Files');
const markDrop = wanted => document.body.classList.toggle('dropping', wanted);
// Calls onFile with every file that is chosen, or dropped on the page.
export function listen(onFile) {
  const first = ([file]) => { if (file) onFile(file); };
  byId('image').onchange = () => first(byId('image').files);
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

// A finger that moves on the image scrolls the page; on the line, it moves the line.
function follow(event) {
  const {top, height} = byId('frame').getBoundingClientRect();
  setLine((event.clientY - top) / height * room.rows);
}
byId('keep_rows').oninput = showLine;
byId('frame').onclick = follow;
byId('frame').onpointerdown = event => {
  if (event.button !== 0 || event.pointerType === 'touch' && event.target !== byId('line')) return;
  byId('frame').setPointerCapture(event.pointerId);
  event.preventDefault();  // selects nothing
  follow(event);
};
byId('frame').onpointermove = event => { if (byId('frame').hasPointerCapture(event.pointerId)) follow(event); };
