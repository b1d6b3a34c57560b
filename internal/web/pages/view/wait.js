// SPDX-License-Identifier: Apache-2.0
// Goes on when what the page waits for has changed. Without scripts a button does it.
{
  const mark = document.querySelector("[data-wait]");
  if (mark) {
    const source = new EventSource(mark.dataset.wait);
    source.onmessage = event => {
      if (event.data === mark.dataset.state) return;
      source.close();
      const on = () => mark.dataset.then ? location.assign(mark.dataset.then) : location.reload();
      // A dialog that the reader has open stays.
      if (document.querySelector(":popover-open")) document.addEventListener("toggle", on, { capture: true, once: true });
      else on();
    };
    window.addEventListener("pagehide", () => source.close());
  }
}
