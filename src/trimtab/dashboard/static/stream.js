// What the server sends on its own: the rows of the overview, what the program can read, and whether the connection lasts.
import { get, session } from "./api.js";

// Every row of the overview by id; pages listen for the ids that change.
export const rows = new Map();
// Why not all autoscalers are shown, by kind; empty where the viewer may see all.
export const limits = { horizontal: "", vertical: "" };
// `program` is what the program can read. `connection` is the way to it: connecting, live or lost, since when, and why.
export const now = { program: null, connection: { state: "connecting", at: 0, reason: "" } };

const RETRY = 2000;
const REFUSED_RETRY = 5000;
// The server sends an event at least every 15 s. A sleeping laptop or a lost route ends no connection, so silence counts.
const SILENCE = 45000;
const listeners = new Set();

export function onRows(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const notify = (changed = new Set()) => [...listeners].forEach((listener) => listener(changed));

async function loadAll() {
  const all = await get("/api/overview");
  rows.clear();
  now.program = all.program;
  Object.assign(limits, { horizontal: all.horizontalLimit, vertical: all.verticalLimit });
  for (const row of [...all.horizontal, ...all.vertical]) rows.set(row.id, row);
  notify(new Set(rows.keys()));
}

function take(news) {
  const changed = new Set(news.removed);
  if (news.program) now.program = news.program;
  for (const id of news.removed) rows.delete(id);
  for (const row of [...news.horizontal, ...news.vertical]) {
    rows.set(row.id, row);
    changed.add(row.id);
  }
  notify(changed);
}

// Follows the stream until the returned function is called. After a reconnect everything is loaded again, because changes were missed.
export function follow(onLoggedOut) {
  let source = null;
  let timer = 0;
  let heard = Date.now();
  const hear = () => (heard = Date.now());
  const lose = (reason) => {
    if (now.connection.state !== "lost") now.connection = { state: "lost", at: heard / 1000, reason };
    else if (reason) now.connection = { ...now.connection, reason };
    notify();
  };
  const open = () => {
    source = new EventSource("/events");
    source.addEventListener("open", () => {
      hear();
      loadAll().then(
        () => ((now.connection = { state: "live", at: 0, reason: "" }), notify()),
        (error) => lose(error.status ? error.message : ""),
      );
    });
    source.addEventListener("still", hear);
    source.addEventListener("rows", (event) => (hear(), take(JSON.parse(event.data))));
    source.addEventListener("error", () => {
      if (now.connection.state === "live") hear();
      lose("");
      if (source.readyState === EventSource.CLOSED) ask();
    });
  };
  // The browser gives up a stream that was refused; the session says why.
  const ask = () =>
    session().then(
      () => (timer = setTimeout(open, RETRY)),
      (error) => {
        if (error.status === 401) return onLoggedOut(error.message);
        lose(error.status ? error.message : "");
        timer = setTimeout(open, REFUSED_RETRY);
      },
    );
  const watch = setInterval(() => {
    if (now.connection.state !== "live" || Date.now() - heard < SILENCE) return;
    source.close();
    lose("");
    open();
  }, 1000);
  open();
  return () => {
    clearInterval(watch);
    clearTimeout(timer);
    source.close();
    now.connection = { state: "connecting", at: 0, reason: "" };
  };
}
