// The search runs in a worker, and browsers give none to pages that are read from disk: there it runs in a frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.documentElement.append(frame);
      const inside = frame.contentWindow;
      const base = new URL(address, location.href);
      const load = (url) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          script.src = new URL(url, base);
          script.onload = done;
          script.onerror = failed;
          inside.document.head.append(script);
        });
      // What a worker has and a window has otherwise.
      inside.importScripts = (...urls) => Promise.all(urls.map(load));
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.frame = frame;
      this.loaded = load(base);
    }
    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.loaded.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
