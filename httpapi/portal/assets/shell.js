// The side bar: a person may collapse it, which the next pages remember.

const toggle = document.getElementById("collapse");

toggle?.addEventListener("click", () => {
  const collapsed = document.body.classList.toggle("collapsed");
  toggle.setAttribute("aria-expanded", String(!collapsed));
  document.cookie = `hubcloud_side=${collapsed ? "collapsed" : "full"}; path=/; max-age=31536000; samesite=lax`;
});

// The columns of tables to compare sort when their heads are pressed.
function makeSortable() {
  for (const table of document.querySelectorAll("table.sortable")) {
    table.classList.remove("sortable");
    const heads = [...table.tHead.rows[0].cells];
    for (const head of heads.filter(({ dataset }) => !("fixed" in dataset))) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, heads, head));
      head.append(button);
    }
  }
}

// On paper a page says when it was printed.
addEventListener("beforeprint", () => {
  document.getElementById("printed").textContent = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "long" }).format();
});

// A list can be printed, and all its rows chosen.
document.addEventListener("click", ({ target }) => {
  if (target.dataset.print !== undefined) {
    print();
  }
});
document.addEventListener("change", ({ target }) => {
  for (const box of target.dataset.all ? target.form.elements[target.dataset.all] : []) {
    box.checked = target.checked;
  }
});

// A change is offered to be undone for ten seconds, and for as long as a person is about to press.
const UNDO = 10_000;
const undo = document.querySelector(".notice.undo");
if (undo) {
  const end = () => (undo.matches(":hover, :focus-within") ? setTimeout(end, UNDO) : undo.classList.add("over"));
  setTimeout(end, UNDO);
  undo.addEventListener("submit", () => setTimeout(() => (undo.querySelector("button").disabled = true))); // after the form was read
}

// Screen readers announce a status that changes, not one that the page came with.
for (const notice of document.querySelectorAll(".notice[role=status]")) {
  const content = [...notice.childNodes];
  notice.style.minHeight = `${notice.offsetHeight}px`;
  notice.replaceChildren();
  setTimeout(() => notice.append(...content), 100);
}

makeSortable();
document.addEventListener("tables", makeSortable); // a part of the page with tables was loaded

// sort sorts a table by a column. Numbers begin with the largest, which is what a person looks for.
function sort(table, heads, head) {
  const numeric = head.classList.contains("number");
  const first = numeric ? "descending" : "ascending";
  const order = head.ariaSort === first ? (numeric ? "ascending" : "descending") : first;
  const column = heads.indexOf(head);
  const text = (row) => row.cells[column].textContent.trim();
  const compare = numeric ? (a, b) => (parseFloat(text(a)) || 0) - (parseFloat(text(b)) || 0) : (a, b) => text(a).localeCompare(text(b), undefined, { numeric: true });
  const rows = [...table.tBodies[0].rows].sort((a, b) => (order === "ascending" ? compare(a, b) : compare(b, a)));
  heads.forEach((other) => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", order);
  table.tBodies[0].append(...rows);
}
