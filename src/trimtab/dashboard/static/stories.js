// What the examples of `trimtab up` show, and what to try with each. Other programs have none.
import { html, useEffect, useState } from "./lib.js";
import { get } from "./api.js";
import { isVertical } from "./format.js";
import { rows } from "./stream.js";

export function Stories() {
  const [stories, setStories] = useState([]);
  useEffect(() => void get("/api/stories").then((found) => setStories(found.stories), () => {}), []);
  if (!stories.length) return null;
  return html`<details class="card stories" open>
    <summary>${stories.length === 1 ? "The story" : `The ${stories.length} stories`} of this cluster</summary>
    <dl>${stories.map((story) => html`<${Story} key=${story.namespace} story=${story} />`)}</dl>
  </details>`;
}

// The list of a story's autoscalers; of VPAs if it has no others.
function addressOf(namespace) {
  const all = [...rows.values()].filter((row) => row.namespace === namespace);
  const kind = all.length && all.every((row) => isVertical(row)) ? { kind: "vertical" } : { kind: "horizontal" };
  return `#/?${new URLSearchParams({ ...kind, namespace })}`;
}

const Story = ({ story }) =>
  html`<div><dt><a href=${addressOf(story.namespace)}>${story.title}</a></dt>
    <dd>${story.see}</dd><dd class="quiet">try: <code>${story.command}</code></dd></div>`;
