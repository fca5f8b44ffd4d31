// Requests to the server, and its errors in words.
const GONE = 'the server has stopped, or cannot be reached';

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const JSON_TYPE = 'application/json';
function headers(key, type = JSON_TYPE) {
  return {'Content-Type': type, ...(key && {Authorization: 'Bearer ' + key})};
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Error(GONE);
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  let words = body.error?.message ?? 'the server answered ' + response.status;
  if (response.status === 401) words = 'the server asks for a key';
  if (response.status === 413) words += '; a larger --max-body lets the server take it';
  if (response.status === 429) words = `the server is busy: ${words}; try again in ${response.headers.get('Retry-After') ?? 'some'} s`;
  throw new Refused(words, response.status);
}

export async function models(key) {
  const response = await ask('v1/models', {headers: headers(key)});
  return (await response.json()).data.filter(model => !model.alias_of);
}

// Seeds go up to 2^64 - 1, numbers of JavaScript to 2^53: they stay texts. A quote inside a text is escaped, so that this
// finds only the field itself.
const parse = text => JSON.parse(text.replace(/"seed":(\d+)/g, '"seed":"$1"'));

// A form with a file. FormData would change the ends of lines in a prompt.
function form(fields) {
  const boundary = 'form-' + [...crypto.getRandomValues(new Uint32Array(4))].map(n => n.toString(16)).join('-');
  const parts = Object.entries(fields).filter(([, value]) => value !== undefined).flatMap(([name, value]) => {
    const isFile = value instanceof Blob, file = isFile ? '; filename="image.png"\r\nContent-Type: image/png' : '';
    const content = isFile || typeof value === 'string' ? value : JSON.stringify(value);
    return [`--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`, content, '\r\n'];
  });
  return {type: 'multipart/form-data; boundary=' + boundary, body: new Blob([...parts, `--${boundary}--\r\n`])};
}

// Calls onEvent with every event of a stream and the seconds since it began. A request with an image continues it.
export async function generate({image_name, ...request}, key, signal, onEvent) {
  const begin = performance.now(), fields = {...request, stream: true};
  const {type, body} = request.image ? form(fields) : {type: JSON_TYPE, body: JSON.stringify(fields)};
  const response = await ask(request.image ? 'v1/images/edits' : 'v1/images/generations', {
    method: 'POST', headers: headers(key, type), signal, body});
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let complete = 0, text = '';
  while (true) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new Error('the server has stopped before the image was complete');
    }
    if (part.done) break;
    text += part.value;
    const blocks = text.split('\n\n');
    text = blocks.pop();
    for (const block of blocks) {
      const event = parse(block.slice(block.indexOf('data: ') + 6));
      if (event.error) throw new Error(event.error.message);
      if (event.type.endsWith('.completed')) complete++;
      await onEvent(event, (performance.now() - begin) / 1000);
    }
  }
  if (complete < (request.n ?? 1)) throw new Error('the server has stopped before the image was complete');
}
