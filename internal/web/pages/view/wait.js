// SPDX-License-Identifier: Apache-2.0
// Goes on when what the page waits for has changed. Without scripts a button does it.
{
  const mark = document.querySelector("[data-wait]");
  if (mark) {
    const source = new EventSource(mark.dataset.wait);
    source.onmessage = event => {
      if (event.data === mark.dataset.state) return;
      source.close();
      if (mark.dataset.then) location.assign(mark.dataset.then);
      else location.reload();
    };
    window.addEventListener("pagehide", () => source.close());
  }
}
