// The page of a site: what needs attention there.

import { updateTimes } from "./ago.js";
import { watchAttention } from "./attention.js";
import { useTexts } from "./session.js";

useTexts(JSON.parse(document.getElementById("live-data").textContent).texts);
updateTimes();
watchAttention((text) => {
  document.getElementById("announcer").textContent = text;
});
