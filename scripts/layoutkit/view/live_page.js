"use strict";
// Asks the server once a second what the workspace holds; loads the page again when the drawing has changed.
(() => {
  const told = document.getElementById("told"), shown = JSON.parse(document.getElementById("data").textContent).version;
  const KEPT = "layout-live-view";
  try {
    const kept = sessionStorage.getItem(KEPT);
    if (kept) window.layoutView.restore(JSON.parse(kept));
  } catch { /* no storage for this page */ }
  const say = (text, kind) => {
    if (told.textContent !== text) told.textContent = text;
    told.className = `verdict ${kind}`;
  };
  const ask = async () => {
    try {
      const answer = await fetch(`state${location.search}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      const state = await answer.json();
      say(state.told, state.kind);
      if (state.version !== shown) {
        try { sessionStorage.setItem(KEPT, JSON.stringify(window.layoutView.state())); } catch { /* as above */ }
        location.reload();
        return;
      }
    } catch {
      say("the page's server has ended: call layout.watch again", "warn");
    }
    setTimeout(ask, 1000);
  };
  ask();
})();
