// What the theme adds to a page as it is shown gets a name and a place in the order of the keyboard.
const named = () => {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((each) => {
    const block = each.closest("[id]");
    each.setAttribute("aria-label", `Copy code ${block ? block.id.replace(/\D+/g, "") : ""}`);
  });
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex]), .lives:not([tabindex])").forEach((each) => {
    each.tabIndex = 0;
  });
};
new MutationObserver(named).observe(document.documentElement, { childList: true, subtree: true });
named();
