// The page of a site: what needs attention there.

import { updateTimes } from "./ago.js";
import { watchAttention } from "./attention.js";

updateTimes();
watchAttention((text) => {
  document.getElementById("announcer").textContent = text;
});
