// What the panel's pages do beside htmx: copy buttons, and secrets that do not outlive their page.
"use strict";

function mayCopy() {
  return Boolean(navigator.clipboard && window.isSecureContext);
}

function prepare(root) {
  for (const button of root.querySelectorAll("button.copy[hidden]")) {
    if (!mayCopy()) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const before = button.textContent;
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = button.dataset.done;
      setTimeout(() => { button.textContent = before; }, 2000);
    });
  }
}

// A browser may keep a page whole for its Back button: what was shown once is gone from it.
window.addEventListener("pagehide", () => {
  for (const each of document.querySelectorAll("[data-secret]")) each.textContent = "";
  for (const each of document.querySelectorAll("button.copy")) each.dataset.copy = "";
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted && document.querySelector("[data-secret]")) window.location.replace("/keys");
});

document.addEventListener("DOMContentLoaded", () => {
  prepare(document);
  // Who reloads this page, or comes back to it, gets another one: it answered a form.
  const once = document.querySelector("[data-instead]");
  if (once) window.history.replaceState(null, "", once.dataset.instead);
});
document.addEventListener("htmx:after:swap", () => prepare(document));

// What a page asks for again by itself: while no answer comes, it says that it is old.
function lost(isLost) {
  for (const each of document.querySelectorAll("[data-lost]")) each.hidden = !isLost;
}
document.addEventListener("htmx:error", () => lost(true));
document.addEventListener("htmx:after:swap", () => lost(false));

// A part that is asked for anew says so to those who do not see that it is dim.
function tellBusy() {
  for (const each of document.querySelectorAll("#keys, #sees, #result")) {
    if (each.classList.contains("htmx-request")) each.setAttribute("aria-busy", "true");
    else each.removeAttribute("aria-busy");
  }
}
document.addEventListener("htmx:before:request", tellBusy);
// htmx takes its mark away only after it has said that the request is over
document.addEventListener("htmx:finally:request", () => setTimeout(tellBusy, 0));
