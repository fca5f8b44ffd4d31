// Earlier images, kept in the browser's database.
const KEPT = 60;  // images

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open('lamplighter', 1);
    request.onupgradeneeded = () => request.result.createObjectStore('images', {keyPath: 'id', autoIncrement: true});
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// Runs an action on the store. Without a database (private windows of some browsers), nothing is kept.
async function use(mode, action) {
  try {
    const database = await open();
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction('images', mode);
      const request = action(transaction.objectStore('images'));
      transaction.oncomplete = () => { database.close(); resolve(request?.result); };
      transaction.onerror = () => { database.close(); reject(transaction.error); };
    });
  } catch {
    return undefined;
  }
}

// The newest first.
export async function list() {
  return ((await use('readonly', store => store.getAll())) ?? []).reverse();
}

export async function add(entry) {
  await use('readwrite', store => store.add(entry));
  const all = await list();
  for (const old of all.slice(KEPT)) await use('readwrite', store => store.delete(old.id));
}

export const clear = () => use('readwrite', store => store.clear());
