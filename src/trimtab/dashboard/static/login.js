// Asks for the token where it did not come with the address.
import { html, useState } from "./lib.js";
import { login } from "./api.js";

export function Login({ onDone, problem }) {
  const [token, setToken] = useState("");
  const [refusal, setRefusal] = useState(problem);
  const enter = (event) => {
    event.preventDefault();
    login(token.trim()).then(onDone, (error) => setRefusal(error.message));
  };
  return html`<main id="main" class="login" tabindex="-1">
    <img src="/static/icon.svg" alt="" width="48" height="48" />
    <h1>Trimtab</h1>
    <p class="quiet">Open the address that the program printed, or paste its token here. In a cluster, use a token of your own:
      <code>kubectl create token NAME</code>.</p>
    <form onSubmit=${enter}>
      <label class="field"><span>Token</span>
        <input type="password" autocomplete="off" required value=${token} onInput=${(event) => setToken(event.target.value)} /></label>
      <button type="submit" class="primary">Log in</button>
    </form>
    ${refusal && html`<p class="alarm" role="alert">${refusal}</p>`}
  </main>`;
}
