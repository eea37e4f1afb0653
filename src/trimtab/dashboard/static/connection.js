// Says how far the page can be trusted: the connection to the program, the program's to the cluster, and what it cannot read.
import { html } from "./lib.js";
import { Time, Words } from "./parts.js";
import { many, zone } from "./format.js";

const isLost = (now) => now.connection.state === "lost";
const isCut = (now) => Boolean(now.program) && now.program.dataAt !== null;

const isOperatorGone = (now) => Boolean(now.program) && now.program.isOperatorGone;

// Whether what the page shows is from an earlier time, or is not carried out.
export const isOld = (now) => isLost(now) || isCut(now) || isOperatorGone(now);

// The state for the header, as a class and in words.
export function statusOf(now) {
  if (isLost(now)) return ["off", "not connected"];
  if (now.connection.state === "connecting" || !now.program) return ["", "connecting …"];
  if (isCut(now)) return ["off", "cluster not read"];
  if (isOperatorGone(now)) return ["off", "operator gone"];
  const { notices, horizontal, vertical } = now.program;
  if (!horizontal.isServed && !vertical.isServed) return ["off", "not installed"];
  if (notices.some((notice) => notice.isProblem)) return horizontal.isRead || vertical.isRead ? ["partly", "partly read"] : ["off", "not read"];
  return horizontal.isRead && vertical.isRead ? ["on", "live"] : ["", "reading …"];
}

const From = ({ at }) => html`<${Time} at=${at} /> ${zone(at)}`;

export function Connection({ now }) {
  const { connection, program } = now;
  const notices = program ? program.notices : [];
  return html`<div class="notices">
    ${isLost(now) &&
    html`<div class="alarm" role="alert">
      <b>The connection to Trimtab was lost</b> at <${From} at=${connection.at} />; trying again.
      ${connection.reason && html` The server says: ${connection.reason}.`}
      ${program ? " What you see is from then." : " Nothing has been read yet."}
    </div>`}
    <div role="status">
      ${notices.map((notice) => html`<${Line} key=${notice.text} notice=${notice} program=${program} />`)}
    </div>
  </div>`;
}

const Line = ({ notice, program }) => html`<div class=${notice.isProblem ? "alarm" : "note"}>
  <${Words} text=${notice.text} />
  ${notice.isProblem && program.dataAt !== null && (program.dataAt ? html` What you see is from <${From} at=${program.dataAt} />; trying again.` : " Nothing has been read yet; trying again.")}
  ${notice.details.length > 0 &&
  html`<details><summary>${notice.isProblem ? many(notice.details.length, "message") : "Settings"}</summary>
    <ul>${notice.details.map((detail) => html`<li key=${detail}>${detail}</li>`)}</ul></details>`}
</div>`;
