// Buttons that copy the text of an element.

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = button.dataset.done;
      setTimeout(() => (button.textContent = label), 3000);
    } catch {
      getSelection().selectAllChildren(source); // the browser does not allow it: the user copies
    }
  });
}
