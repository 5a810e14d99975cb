// The end of the session while a page is open.

import { restoreForms, saveForms } from "./draft.js";
import { setTexts, textOf } from "./texts.js";

// useTexts sets the texts, and fills in the forms that were kept when the session ended.
export function useTexts(textsByName) {
  setTexts(textsByName);
  restoreForms(textOf("draft"));
}

// sessionEnded says that the session has ended, and links to the sign-in page, which returns here.
// With anew, the person has signed in again: the link loads this page. Input is kept.
export function sessionEnded(anew = false) {
  if (document.getElementById("session-ended")) {
    return;
  }
  const notice = document.createElement("p");
  notice.id = "session-ended";
  notice.className = "notice wait";
  notice.setAttribute("role", "alert");
  const link = document.createElement("a");
  const { pathname, search } = location;
  const portal = pathname.indexOf("/portal/");
  link.href = anew ? pathname + search : `${pathname.slice(0, portal)}/portal/sign-in?next=${encodeURIComponent(pathname.slice(portal) + search)}`;
  link.textContent = textOf(anew ? "reload" : "sign-in");
  notice.append(`${textOf(anew ? "signed-in-anew" : "session-ended")} `, link);
  document.getElementById("main").prepend(notice);
  window.addEventListener("pagehide", saveForms);
}
