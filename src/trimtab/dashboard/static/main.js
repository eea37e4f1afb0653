// Starts the page: logs in with the token behind `#` if there is one, follows the stream, and shows what the address names.
import { html, render, useEffect, useState } from "./lib.js";
import { follow, login, logout, notices, onRows, session } from "./api.js";
import { HorizontalPage } from "./hpa.js";
import { Loads } from "./loads.js";
import { Login } from "./login.js";
import { Overview } from "./overview.js";
import { VerticalPage } from "./vpa.js";

async function begin() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  let problem = "";
  if (token) {
    // The token leaves the address at once: neither history nor a shared screen should keep it.
    history.replaceState(null, "", "/#/");
    await login(token).catch((error) => (problem = error.message));
  }
  return session().then((found) => [found, ""], (error) => [null, error.status === 401 ? problem : error.message]);
}

function useAddress() {
  const [address, setAddress] = useState(location.hash);
  useEffect(() => {
    const change = () => setAddress(location.hash);
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return address.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
}

function App() {
  const [who, setWho] = useState(undefined);
  const [problem, setProblem] = useState("");
  const enter = () => begin().then(([found, message]) => (setWho(found), setProblem(message)));
  useEffect(() => void enter(), []);
  useEffect(() => (who ? follow((how) => (setProblem(`Your session has ended; ${how}`), setWho(null))) : undefined), [who]);
  if (who === undefined) return html`<p class="quiet loading" role="status">Loading …</p>`;
  if (who === null) return html`<${Login} onDone=${enter} problem=${problem} />`;
  return html`<${Shell} who=${who} leave=${() => logout().then(() => (setProblem(""), setWho(null)))} />`;
}

function Shell({ who, leave }) {
  const [kind, ...rest] = useAddress();
  const id = [kind, ...rest].join("/");
  const [isLive, setLive] = useState(false);
  const [known, setKnown] = useState(notices);
  useEffect(() => onRows((_, live) => (setLive(live), setKnown(notices))), []);
  useEffect(() => {
    document.title = rest.length ? `${rest[rest.length - 1]} – ${who.title}` : who.title;
    scrollTo(0, 0);
  }, [id]);
  const here = (name) => (kind === name ? "page" : undefined);
  return html`<a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>Skip to content</a>
    <header class="top"><div class="top-in">
      <a class="brand" href="#/"><img src="/static/icon.svg" alt="" width="24" height="24" /> ${who.title}</a>
      <nav aria-label="Main">
        <a href="#/" aria-current=${here("")}>Autoscalers</a>
        ${who.hasLoads && html`<a href="#/loads" aria-current=${here("loads")}>Load</a>`}
      </nav>
      <span class="live ${isLive ? "on" : ""}" role="status"><span class="dot" aria-hidden="true"></span>${isLive ? "live" : "not connected"}</span>
      <span class="who quiet" title=${who.user}>${who.user.replace(/^system:serviceaccount:/, "")}</span>
      <button type="button" class="small" onClick=${leave}>Log out</button>
    </div></header>
    ${known.length > 0 &&
    html`<aside class="notices" aria-label="About this program" role="status">
      ${known.map((notice) => html`<p key=${notice.text} class=${notice.isProblem ? "alarm" : "note"}>${notice.text}</p>`)}
    </aside>`}
    ${kind === "hpa" || kind === "native"
      ? html`<${HorizontalPage} key=${id} id=${id} />`
      : kind === "vpa"
        ? html`<${VerticalPage} key=${id} id=${id} />`
        : kind === "loads"
          ? html`<${Loads} />`
          : html`<${Overview} />`}`;
}

render(html`<${App} />`, document.getElementById("app"));
