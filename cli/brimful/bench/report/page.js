// SPDX-License-Identifier: MIT
// What the page can do beyond being read: light or dark by hand, one allocator picked out in all pictures, and a mark's
// text where there is no mouse to rest on it. Without scripts everything is still there.
"use strict";
(() => {
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const wanted = /theme=(dark|light)/.exec(location.hash);
  if (wanted) root.dataset.theme = wanted[1];
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; });

  const chips = document.getElementById("chips");
  let picked = "";
  const pick = (name) => {
    picked = name === picked ? "" : name;
    document.body.classList.toggle("picked", picked !== "");
    for (const mark of document.querySelectorAll("[data-a]")) mark.classList.toggle("on", mark.dataset.a === picked);
    for (const chip of chips.querySelectorAll("button")) chip.ariaPressed = String(chip.value === picked);
  };
  if (chips) {
    chips.hidden = false;
    chips.addEventListener("click", (event) => { if (event.target.value) pick(event.target.value); });
  }

  const tip = document.getElementById("tip");
  document.addEventListener("click", (event) => {
    const title = event.target.closest("figure svg *")?.querySelector(":scope > title");
    tip.textContent = title ? title.textContent : "";
    tip.hidden = !title;
  });

  // paper has no scroll bars and nothing to open
  addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; });
})();
