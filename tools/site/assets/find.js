// Finds headings by their words; the index is a plain script, because pages opened from a directory may fetch nothing.
(() => {
  const field = document.getElementById("find");
  const list = document.getElementById("found");
  const root = document.body.dataset.root;
  const show = () => {
    const words = field.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const fits = ([page, heading]) => words.every((word) => `${page} ${heading}`.toLowerCase().includes(word));
    const hits = words.length ? window.pages.filter(fits).slice(0, 12) : [];
    list.replaceChildren(
      ...hits.map(([page, heading, place]) => {
        const item = document.createElement("li");
        const link = document.createElement("a");
        link.href = root + place;
        link.textContent = heading;
        const where = document.createElement("span");
        where.textContent = page === heading ? "" : page;
        link.append(where);
        item.append(link);
        return item;
      }),
    );
  };
  field.addEventListener("input", show);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") (field.value = ""), show();
    if (event.key === "Enter" && list.querySelector("a")) location.href = list.querySelector("a").href;
  });
  // On a narrow screen the list of pages would push the page itself away.
  if (matchMedia("(max-width: 860px)").matches) document.querySelector("nav details").open = false;
})();
