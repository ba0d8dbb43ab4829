// Light or dark: what the reader prefers, or chooses here.

import { el } from "./elements.js";

/** Make the button that changes between light and dark. */
export function themeButton() {
  const dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const said = () => (dark() ? "Light" : "Dark");
  const button = el("button", { type: "button", class: "quiet", id: "theme" }, said());
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    button.textContent = said();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (button.textContent = said()));
  return button;
}
