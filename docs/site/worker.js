/* SPDX-License-Identifier: MIT */
/* Search of pages that are opened as files. A browser starts no worker from a file, so its script runs in a frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      // The frame tells by events of its element: what the script answers, and that the script is there.
      this.frame.addEventListener("answer", event =>
        this.dispatchEvent(new MessageEvent("message", { data: event.detail })))
      this.frame.addEventListener("ready", () => {
        for (const data of this.waiting) this.send(data)
        this.waiting = null
      })
      const tell = (name, detail) => `frameElement.dispatchEvent(new CustomEvent("${name}"${detail}))`
      const end = "</" + "script>"
      const inside = this.frame.contentDocument
      inside.open()
      inside.write(`<script>postMessage = detail => ${tell("answer", ", { detail }")}${end}` +
        `<script src="${url}">${end}<script>${tell("ready", "")}${end}`)
      inside.close()
    }
    send(data) { this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })) }
    postMessage(data) { this.waiting ? this.waiting.push(data) : this.send(data) }
    terminate() { this.frame.remove() }
  }
}
