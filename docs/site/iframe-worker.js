// From a folder on disk a browser starts no worker. The theme's search gets a frame that does the same.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.inner = frame.contentWindow;
    this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", {data}));
    this.ready = new Promise((then) => {
      const script = this.inner.document.createElement("script");
      script.src = url;
      script.onload = then;
      this.inner.document.body.append(script);
    });
  }

  postMessage(data) {
    this.ready.then(() => this.inner.dispatchEvent(new this.inner.MessageEvent("message", {data})));
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
