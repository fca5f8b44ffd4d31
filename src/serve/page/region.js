// The rectangle of an image that is generated anew. It has whole tokens.
const byId = id => document.getElementById(id);
const EDGES = ['left', 'top', 'width', 'height'];
let room = null;  // {width, height, columns, rows} of the image, in pixels and in tokens
let at = null;  // {left, top, width, height} of the rectangle in tokens

const limit = (value, least, most) => Math.min(Math.max(value, least), most);
const cell = () => ({x: room.width / room.columns, y: room.height / room.rows});
const field = edge => byId('region-' + edge);
const percent = (part, all) => 100 * part / all + '%';

// The tokens that a request generates anew, by image row: {row, left, right}; `right` is behind the last.
export function generated({size, region, behind, keep_rows = 0}, {columns, rows}) {
  if (!region) return Array.from({length: rows - keep_rows}, (_, i) => ({row: keep_rows + i, left: 0, right: columns}));
  const [width, height] = size.split('x').map(Number), [x, y, w, h] = region.split(',').map(Number);
  const left = Math.floor(x * columns / width), top = Math.floor(y * rows / height);
  const right = Math.ceil((x + w) * columns / width), bottom = Math.ceil((y + h) * rows / height), redraws = behind === 'redraw';
  return Array.from({length: (redraws ? rows : bottom) - top}, (_, i) => ({
    row: top + i, left: top + i < bottom ? left : 0, right: redraws ? columns : right}));
}

const redraws = () => byId('behind').value === 'redraw';
// Whether a kept token comes after the first new one: by its probability candidates are compared.
const isCompared = () => redraws() ? at.left > 0 && at.height > 1
  : at.height > 1 && at.width < room.columns || at.left + at.width < room.columns || at.top + at.height < room.rows;

function show() {
  const {columns, rows} = room, {x, y} = cell(), right = at.left + at.width, bottom = at.top + at.height;
  const pixels = {left: at.left * x, top: at.top * y, width: at.width * x, height: at.height * y};
  const most = {left: room.width - x, top: room.height - y, width: room.width, height: room.height};
  for (const edge of EDGES) {
    const step = edge === 'left' || edge === 'width' ? x : y, least = edge === 'left' || edge === 'top' ? 0 : step;
    Object.assign(field(edge), {step, min: least, max: most[edge], value: pixels[edge]});
  }
  Object.assign(byId('box').style, {left: percent(at.left, columns), top: percent(at.top, rows),
    width: percent(at.width, columns), height: percent(at.height, rows)});
  const end = redraws() ? columns : right;
  const corners = [[at.left, at.top], [end, at.top], ...(redraws() ? [[columns, rows], [0, rows], [0, bottom]] : [[end, bottom]]), [at.left, bottom]];
  byId('anew').style.clipPath = `polygon(${corners.map(([a, b]) => percent(a, columns) + ' ' + percent(b, rows)).join(', ')})`;
  byId('candidates').disabled = !isCompared();
  byId('candidates-hint').textContent = isCompared()
    ? 'Of several candidates, the one is taken that fits best with what stays behind the rectangle.'
    : 'Nothing stays behind the rectangle by which candidates could be compared.';
}
function set({left, top, width, height}) {
  width = limit(width, 1, room.columns);
  height = limit(height, 1, room.rows);
  at = {left: limit(left, 0, room.columns - width), top: limit(top, 0, room.rows - height), width, height};
  show();
}
// What two corners enclose, at least a token.
function span(one, other) {
  const left = Math.min(one.x, other.x), top = Math.min(one.y, other.y);
  set({left, top, width: Math.abs(one.x - other.x), height: Math.abs(one.y - other.y)});
}

// Says what the image is like. The rectangle stays where it is in the image.
export function fit(next) {
  const before = room;
  room = next;
  if (!before || !at) return middle();
  const across = room.columns / before.columns, down = room.rows / before.rows;
  set({left: Math.round(at.left * across), top: Math.round(at.top * down), width: Math.round(at.width * across), height: Math.round(at.height * down)});
}
function middle() {
  const {columns, rows} = room, width = Math.max(Math.floor(columns / 2), 1), height = Math.max(Math.floor(rows / 2), 1);
  set({left: Math.floor((columns - width) / 2), top: Math.floor((rows - height) / 2), width, height});
}
// The rectangle of an earlier request, or else one in the middle.
export function restore({region, behind = 'keep', candidates = 1} = {}) {
  byId('behind').value = behind;
  byId('candidates').value = candidates;
  if (!region) return middle();
  take(region.split(',').map(Number));
}
// Pixels grow outwards to whole tokens.
function take([x, y, w, h]) {
  const {x: across, y: down} = cell(), left = Math.floor(x / across), top = Math.floor(y / down);
  set({left, top, width: Math.ceil((x + w) / across) - left, height: Math.ceil((y + h) / down) - top});
}
// The fields of a request.
export function fields() {
  const {x, y} = cell(), count = Number(byId('candidates').value);
  return {region: [at.left * x, at.top * y, at.width * x, at.height * y].join(','), behind: byId('behind').value,
    ...(isCompared() && count > 1 && {candidates: count})};
}

// Pointers: a corner changes the sides, the rectangle moves, and elsewhere a mouse or a pen draws a new one.
let drag = null;
function place(event) {
  const {left, top, width, height} = byId('frame').getBoundingClientRect();
  return {x: limit((event.clientX - left) / width, 0, 1) * room.columns, y: limit((event.clientY - top) / height, 0, 1) * room.rows};
}
const rounded = ({x, y}) => ({x: Math.round(x), y: Math.round(y)});

// Whether a pointer that goes down here changes the rectangle; a finger elsewhere scrolls the page.
export const takes = event => event.pointerType !== 'touch' || byId('box').contains(event.target);
export function begin(event) {
  const from = place(event), corner = event.target.dataset?.corner, right = at.left + at.width, bottom = at.top + at.height;
  drag = {from, x: event.clientX, y: event.clientY, moved: false, start: at, kind: corner ? 'size' : byId('box').contains(event.target) ? 'move' : 'draw'};
  if (corner) drag.anchor = {x: corner.includes('w') ? right : at.left, y: corner.includes('n') ? bottom : at.top};
}
export function move(event) {
  const SLACK = 4;  // pixels that a click may move
  drag.moved ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) >= SLACK;
  if (!drag.moved) return;
  const to = place(event), {from, start, anchor, kind} = drag;
  if (kind === 'move') return set({...start, left: start.left + Math.round(to.x - from.x), top: start.top + Math.round(to.y - from.y)});
  if (kind === 'size') return span(anchor, rounded(to));
  const outwards = (value, other) => value < other ? Math.floor(value) : Math.ceil(value);
  span({x: outwards(from.x, to.x), y: outwards(from.y, to.y)}, {x: outwards(to.x, from.x), y: outwards(to.y, from.y)});
}
// A click that drags nothing moves the middle of the rectangle there.
export function click(event) {
  const was = drag;
  drag = null;
  if (was && (was.moved || was.kind !== 'draw')) return;
  const {x, y} = place(event);
  set({...at, left: Math.round(x - at.width / 2), top: Math.round(y - at.height / 2)});
}

byId('frame').onpointercancel = () => { drag = null; };
for (const edge of EDGES)
  field(edge).onchange = () => take(EDGES.map(one => Number(field(one).value)));
byId('behind').onchange = show;
