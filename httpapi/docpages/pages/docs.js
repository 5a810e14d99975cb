// What the pages of the documents do beyond showing text. It runs right after the contents, so that nothing moves later.
"use strict";

// On a phone the contents are closed, and close again after a choice.
const contents = document.querySelector(".contents details");
const narrow = matchMedia("(max-width: 60rem)");
contents.open = !narrow.matches;
narrow.addEventListener("change", () => { contents.open = !narrow.matches; });
contents.addEventListener("click", (event) => {
  if (narrow.matches && event.target.closest("a")) {
    contents.open = false;
  }
});

// copyButton returns a button that copies what text() returns.
function copyButton(text) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed"; // by the browser: not a secure context
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return button;
}

// Code can be copied; what a command prints need not be.
document.addEventListener("DOMContentLoaded", () => {
  for (const code of document.querySelectorAll(".code > pre > code:not(.language-text)")) {
    code.closest(".code").append(copyButton(() => code.textContent));
  }
});
