// Loads the page of a training again, as long as the reader lets it.
"use strict";

{
  const box = document.getElementById("refresh");
  const stopped = "#stopped";
  box.checked = location.hash !== stopped;
  box.addEventListener("change", () => {
    history.replaceState(null, "", box.checked ? location.pathname : stopped);
  });
  window.setInterval(() => {
    if (box.checked && !document.hidden) location.reload();
  }, 1000 * Number(box.dataset.seconds));
}
