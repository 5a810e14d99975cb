// Forms that were filled in when the session ended, or when another form of their page was sent: what was
// typed is put back into them.

const KEPT = "hubcloud-draft"; // the name in the browser's storage
const MAX_AGE = 3600_000;
const OTHERS_AGE = 600_000;

const fieldsOf = (form) => [...form.elements].filter((field) => field.name && field.type !== "hidden" && !["button", "submit"].includes(field.type));

// fill puts the values of a draft into the form that has its action. It returns the first field
// that it changed; null if the page has no such form.
function fill({ action, fields, same = {} }) {
  const isSame = (field, value) => field && (field.type !== "hidden" || field.value === value);
  const matches = (form) => form.method === "post" && new URL(form.action).pathname.endsWith(action) && Object.entries(same).every(([name, value]) => isSame(form.elements[name], value));
  const form = [...document.forms].find(matches);
  if (!form) {
    return null;
  }
  let first = null;
  for (const field of fieldsOf(form)) {
    const values = fields[field.name];
    if (!values) {
      if (field.type === "checkbox") {
        field.checked = false;
      }
      continue;
    }
    if (["checkbox", "radio"].includes(field.type)) {
      field.checked = values.includes(field.value);
    } else {
      field.value = values[0];
    }
    first ??= field;
  }
  for (let box = form.closest("details"); box; box = box.parentElement.closest("details")) {
    box.open = true;
  }
  return first ?? form;
}

// same are the hidden fields that tell forms with the same action apart: those of a channel, a room
// or a code.
function sameOf(fields) {
  const same = {};
  for (const name of ["key", "endpoint", "site", "room", "credential"]) {
    if (fields[name]) {
      same[name] = fields[name][0];
    }
  }
  return same;
}

// chosenFirst returns the index of the option that a select had at first.
const chosenFirst = ({ options }) => Math.max(0, [...options].findIndex((option) => option.defaultSelected));

// changed reports whether a person has changed a field.
function changed(field) {
  if (field.type === "checkbox") {
    return field.checked !== field.defaultChecked;
  }
  return field.localName === "select" ? field.selectedIndex !== chosenFirst(field) : field.value !== field.defaultValue;
}

// typedForms returns the forms of the page, but for one, that have input which was not sent. A door
// code is not kept.
function typedForms(sent) {
  const drafts = [];
  for (const form of document.forms) {
    if (form === sent || form.method !== "post" || !fieldsOf(form).some(changed)) {
      continue;
    }
    const fields = {};
    for (const [name, value] of new FormData(form)) {
      (fields[name] ??= []).push(value);
    }
    for (const name of ["form_token", "once", "idempotency_key", "code"]) {
      delete fields[name];
    }
    drafts.push({ action: new URL(form.action).pathname, fields, same: sameOf(fields) });
  }
  return drafts;
}

// saveForms keeps the forms of the page until the person has signed in again.
export function saveForms() {
  const drafts = typedForms();
  if (drafts.length > 0) {
    localStorage.setItem(KEPT, JSON.stringify({ at: Date.now(), who: who(), drafts }));
  }
}

// saveOthers keeps the forms of the page for its next load in this tab, when one of them is sent.
export function saveOthers(sent) {
  const drafts = typedForms(sent);
  if (drafts.length > 0) {
    sessionStorage.setItem(KEPT, JSON.stringify({ at: Date.now(), who: who(), drafts }));
  }
}

// fillKept fills in the forms that are kept there, and returns the first field; null for none.
function fillKept(storage, age) {
  const kept = JSON.parse(storage.getItem(KEPT) ?? "null");
  if (!kept) {
    return null;
  }
  const valid = kept.who === who() && Date.now() - kept.at < age;
  const first = valid ? kept.drafts.map(fill).find((field) => field) : null;
  if (first || !valid) {
    storage.removeItem(KEPT); // else the forms are on another page
  }
  return first ?? null;
}

// restoreOthers fills in the forms that saveOthers kept.
export const restoreOthers = () => fillKept(sessionStorage, OTHERS_AGE);

const who = () => document.querySelector(".who bdi")?.textContent;

// restoreForms fills in the forms that saveForms kept, and says so with that text.
export function restoreForms(text) {
  const first = fillKept(localStorage, MAX_AGE);
  if (!first) {
    return;
  }
  const notice = document.createElement("p");
  notice.className = "notice wait";
  notice.setAttribute("role", "status");
  notice.textContent = text;
  document.getElementById("main").prepend(notice);
  first.focus();
}

const element = document.getElementById("draft-data");
if (element) {
  const draft = JSON.parse(element.textContent);
  const first = fill({ ...draft, same: sameOf(draft.fields) });
  if (first) {
    document.querySelector("#draft dl")?.remove(); // the form shows it
    first.focus();
  }
}
