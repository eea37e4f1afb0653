// Starts the page: logs in with the token behind `#` if there is one, follows the stream, and shows what the address names.
import { html, render, useEffect, useMemo, useRef, useState } from "./lib.js";
import { login, logout, session } from "./api.js";
import { zone } from "./format.js";
import { Connection, isOld, statusOf } from "./connection.js";
import { HorizontalPage } from "./hpa.js";
import { Loads } from "./loads.js";
import { Login } from "./login.js";
import { Overview } from "./overview.js";
import { Back, Empty, Title, expectTitle } from "./parts.js";
import { follow, now, onRows } from "./stream.js";
import { VerticalPage } from "./vpa.js";

const tokenInAddress = () => new URLSearchParams(location.hash.slice(1)).get("token");

async function begin() {
  const token = tokenInAddress();
  let problem = "";
  if (token) {
    // The token leaves the address at once: neither history nor a shared screen should keep it.
    history.replaceState(null, "", "/#/");
    await login(token).catch((error) => (problem = error.message));
  }
  return session().then((found) => [found, ""], (error) => [null, error.status === 401 ? problem : error.message]);
}

// A part of the path. One that was cut inside an escape stays as it is, and names nothing.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// The path of the address, and the filters behind `?`. It is a new value after each navigation, also to the same place.
function useAddress() {
  const [address, setAddress] = useState({ hash: location.hash });
  useEffect(() => {
    const change = () => setAddress({ hash: location.hash });
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return useMemo(() => {
    const [path, query] = address.hash.replace(/^#\/?/, "").split("?");
    return { parts: path.split("/").map(decoded), query: query || "" };
  }, [address]);
}

function App() {
  const [who, setWho] = useState(undefined);
  const [problem, setProblem] = useState("");
  const enter = () => begin().then(([found, message]) => (setWho(found), setProblem(message)));
  useEffect(() => {
    // The printed address can be opened in a tab that has the page, which then starts anew: a login ends the session that the page belongs to.
    const change = () => tokenInAddress() && (setWho(undefined), enter());
    addEventListener("hashchange", change);
    enter();
    return () => removeEventListener("hashchange", change);
  }, []);
  useEffect(() => (who ? follow((how) => (setProblem(`Your session has ended; ${how}`), setWho(null))) : undefined), [who]);
  if (who === undefined) return html`<p class="quiet loading" role="status">Loading …</p>`;
  if (who === null) return html`<${Login} onDone=${enter} problem=${problem} />`;
  return html`<${Shell} who=${who} leave=${() => logout().then(() => (setProblem(""), setWho(null)))} />`;
}

function Shell({ who, leave }) {
  const address = useAddress();
  const [kind, ...rest] = address.parts;
  const id = address.parts.join("/");
  const [, setVersion] = useState(0);
  useEffect(() => onRows(() => setVersion((number) => number + 1)), []);
  const shown = useRef(id);
  if (shown.current !== id) {
    shown.current = id;
    expectTitle(); // before the page is drawn, whose title takes the focus
  }
  useEffect(() => {
    document.title = rest.length ? `${rest[rest.length - 1]} – ${who.title}` : who.title;
    scrollTo(0, 0);
  }, [id]);
  const here = (name) => (kind === name ? "page" : undefined);
  const [status, words] = statusOf(now);
  return html`<a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>Skip to content</a>
    <header class="top"><div class="top-in">
      <a class="brand" href="#/"><img src="/static/icon.svg" alt="" width="24" height="24" /> ${who.title}</a>
      <nav aria-label="Main">
        <a href="#/" aria-current=${here("")}>Autoscalers</a>
        ${who.hasLoads && html`<a href="#/loads" aria-current=${here("loads")}>Load</a>`}
      </nav>
      <span class="live ${status}" role="status"><span class="dot" aria-hidden="true"></span>${words}</span>
      <span class="zone quiet" title="All times on this page are in your time zone, ${Intl.DateTimeFormat().resolvedOptions().timeZone}">${zone()}</span>
      <span class="who quiet" title=${who.user}>${who.user.replace(/^system:serviceaccount:/, "")}</span>
      <button type="button" class="small" onClick=${leave}>Log out</button>
    </div></header>
    <${Connection} now=${now} />
    <div class=${isOld(now) ? "old" : ""}>
      ${kind === "hpa" || kind === "native"
        ? html`<${HorizontalPage} key=${id} id=${id} />`
        : kind === "vpa" || kind === "native-vpa"
          ? html`<${VerticalPage} key=${id} id=${id} />`
          : kind === "loads"
            ? html`<${Loads} />`
            : kind === ""
              ? html`<${Overview} address=${address} />`
              : html`<${NoPage} key=${id} />`}
    </div>
    <footer class="zone quiet phone-only">All times are in ${zone()}.</footer>`;
}

const NoPage = () =>
  html`<main id="main" tabindex="-1"><${Back} /><${Title}>There is no such page<//>
    <${Empty}>This address names nothing that the dashboard shows. An autoscaler is at #/hpa/NAMESPACE/NAME, #/native/…, #/vpa/… or #/native-vpa/….<//></main>`;

render(html`<${App} />`, document.getElementById("app"));
