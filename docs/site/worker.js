/* SPDX-License-Identifier: MIT */
/* Search of pages that are opened as files. A browser starts no worker from a file, so its script runs in a frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.inside = frame.contentWindow
      addEventListener("message", event => {
        if (event.source === this.inside)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }))
      })
      frame.contentDocument.write("<script>postMessage = data => parent.dispatchEvent(new MessageEvent('message', " +
        "{ data, source: window }))</" + "script><script src='" + url + "'></" + "script>")
      frame.contentDocument.close()
      frame.addEventListener("load", () => {
        for (const data of this.waiting) this.send(data)
        this.waiting = null
      })
    }
    send(data) { this.inside.dispatchEvent(new MessageEvent("message", { data })) }
    postMessage(data) { this.waiting ? this.waiting.push(data) : this.send(data) }
    terminate() {}
  }
}
