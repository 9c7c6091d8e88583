// A page that was opened from disk must not start a Worker. There the search's script runs in an empty frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const frame = Object.assign(document.createElement("iframe"), { hidden: true })
      document.documentElement.append(frame)
      const inside = frame.contentWindow
      const load = source =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script")
          Object.assign(script, { src: source, async: false, onload: done, onerror: failed })
          inside.document.documentElement.append(script)
        })
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      inside.importScripts = (...sources) => Promise.all(sources.map(load))
      const ready = load(address)
      this.postMessage = data => ready.then(() => inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
