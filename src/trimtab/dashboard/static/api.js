// The client of the server: the session and JSON requests.

let csrf = "";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const NO_ANSWER = "Trimtab does not answer. Is it running, and is the way to it open (kubectl port-forward)?";

// Throws Refused: with the server's status and message, or with status 0 if there is no answer.
async function request(path, options) {
  const response = await fetch(path, { credentials: "same-origin", ...options }).catch(() => {
    throw new Refused(0, NO_ANSWER);
  });
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
