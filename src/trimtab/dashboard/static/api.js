// The client of the server: the session, JSON requests, and the stream that keeps the overview live.

let csrf = "";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function request(path, options) {
  const response = await fetch(path, { credentials: "same-origin", ...options });
  if (response.status === 204) return null;
  const body = await response.json().catch(() => ({ message: `the server answered ${response.status}` }));
  if (!response.ok) throw new Refused(response.status, body.message);
  return body;
}

export const get = (path) => request(path, {});

export const post = (path, body) =>
  request(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-trimtab-csrf": csrf },
    body: JSON.stringify(body),
  });

export async function session() {
  const found = await get("/api/session");
  csrf = found.csrf;
  return found;
}

export const login = (token) => post("/api/login", { token });
export const logout = () => post("/api/logout", {});

// Every row of the overview by id; pages listen for the ids that change.
export const rows = new Map();
// Notices about the program itself: that it is read-only, or what it cannot read.
export let notices = [];
// Why not all autoscalers are shown, by kind; empty where the viewer may see all.
export const limits = { horizontal: "", vertical: "" };
const listeners = new Set();

export function onRows(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notify(changed, isLive) {
  for (const listener of [...listeners]) listener(changed, isLive);
}

let isLive = false;

async function loadAll() {
  const all = await get("/api/overview");
  rows.clear();
  notices = all.notices;
  Object.assign(limits, { horizontal: all.horizontalLimit, vertical: all.verticalLimit });
  for (const row of [...all.horizontal, ...all.vertical]) rows.set(row.id, row);
  notify(new Set(rows.keys()), isLive);
}

// Follows the stream. After a reconnect everything is loaded again, because changes were missed.
export function follow(onLoggedOut) {
  const source = new EventSource("/events");
  source.addEventListener("open", () => {
    isLive = true;
    loadAll().catch(() => {});
  });
  source.addEventListener("rows", (event) => {
    const news = JSON.parse(event.data);
    const changed = new Set(news.removed);
    if (news.notices) notices = news.notices;
    for (const id of news.removed) rows.delete(id);
    for (const row of [...news.horizontal, ...news.vertical]) {
      rows.set(row.id, row);
      changed.add(row.id);
    }
    notify(changed, isLive);
  });
  source.addEventListener("error", async () => {
    isLive = false;
    notify(new Set(), isLive);
    if (source.readyState !== EventSource.CLOSED) return;
    try {
      await session();
      setTimeout(() => follow(onLoggedOut), 2000);
    } catch (error) {
      if (error.status === 401) onLoggedOut(error.message);
      else setTimeout(() => follow(onLoggedOut), 5000);
    }
  });
  return () => source.close();
}
