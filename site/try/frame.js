// The frame, an origin of its own, becomes the report that the page gives it, with the policy that the report has.

addEventListener("message", ({ data, source }) => {
  if (source !== parent) return;
  document.open();
  document.write(data);
  document.close();
});
