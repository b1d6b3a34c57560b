// SPDX-License-Identifier: Apache-2.0
// Shows the signed version of a PDF that was changed later beside the present one. The file is the one that the person has
// chosen: it is read here, and nothing of it runs.
function compare(form) {
  const input = form.querySelector("input[type=file]");
  for (const area of document.querySelectorAll("[data-compare]")) {
    const file = input.files[Number(area.dataset.compare)];
    if (!file || !/\.pdf$/i.test(file.name)) continue;
    const note = area.querySelector("[role=status]"), [before, next] = area.querySelectorAll("button"), canvases = area.querySelectorAll("canvas");
    const show = async () => {
      const pdf = await import(form.dataset.script);
      pdf.GlobalWorkerOptions.workerSrc = form.dataset.worker;
      const open = async part => pdf.getDocument({ data: await part.arrayBuffer(), enableXfa: false, stopAtErrors: false, verbosity: 0 }).promise;
      const versions = [await open(file.slice(0, Number(area.dataset.revision))), await open(file)];
      let number = 1;
      const most = Math.max(...versions.map(v => v.numPages));
      const draw = async () => {
        before.disabled = next.disabled = true;
        for (const [i, version] of versions.entries()) {
          const canvas = canvases[i], context = canvas.getContext("2d");
          canvas.width = canvas.width; // empty
          if (number > version.numPages) continue;
          const page = await version.getPage(number), size = page.getViewport({ scale: 1 });
          const viewport = page.getViewport({ scale: Math.min(560 / size.width, 4000 / size.height) });
          canvas.width = viewport.width;
          canvas.height = viewport.height;
          await page.render({ canvas, canvasContext: context, viewport }).promise; // with annotations: they may be the change
        }
        note.textContent = `${area.dataset.page} ${number} / ${most}`;
        before.disabled = number === 1;
        next.disabled = number === most;
      };
      before.addEventListener("click", () => { number--; draw(); });
      next.addEventListener("click", () => { number++; draw(); });
      await draw();
    };
    area.hidden = false;
    show().catch(() => { area.hidden = true; });
  }
}
