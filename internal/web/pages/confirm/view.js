// SPDX-License-Identifier: Apache-2.0
// Shows a PDF, one page at a time. pdf.js draws it, and nothing of the document runs.
document.querySelectorAll("[data-view]").forEach(async area => {
  const sheet = area.querySelector("[data-sheet]"), canvas = area.querySelector("canvas"), text = area.querySelector("[data-text]");
  const note = area.querySelector("[role=status]"), [before, next] = area.querySelectorAll("button");
  let pages, shown = 1;
  const show = async number => {
    before.disabled = next.disabled = true;
    try {
      const page = await pages.getPage(number), size = page.getViewport({ scale: 1 });
      // An untrusted page may be a mile long.
      const viewport = page.getViewport({ scale: Math.min(Math.min(sheet.clientWidth, 720) / size.width, 4000 / size.height) });
      canvas.width = viewport.width;
      canvas.height = viewport.height;
      await page.render({ canvas, canvasContext: canvas.getContext("2d"), viewport, annotationMode: 0 }).promise;
      text.textContent = (await page.getTextContent()).items.map(i => (i.str || "") + (i.hasEOL ? "\n" : " ")).join("");
      shown = number;
      note.textContent = `${area.dataset.page} ${number} / ${pages.numPages}`;
    } catch (e) {
      note.textContent = area.dataset.failed;
    }
    before.disabled = shown === 1;
    next.disabled = shown === pages.numPages;
  };
  area.hidden = false;
  before.addEventListener("click", () => show(shown - 1));
  next.addEventListener("click", () => show(shown + 1));
  try {
    const pdf = await import(area.dataset.script);
    pdf.GlobalWorkerOptions.workerSrc = area.dataset.worker;
    const answer = await fetch(area.dataset.document, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    pages = await pdf.getDocument({ data: await answer.arrayBuffer(), enableXfa: false, stopAtErrors: false }).promise;
  } catch (e) {
    note.textContent = area.dataset.failed;
    return;
  }
  await show(1);
});
