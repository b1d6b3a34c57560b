// SPDX-License-Identifier: Apache-2.0
// Places the stamp on a page of the chosen PDF. The file is read here and not sent for that.
document.querySelectorAll("[data-place]").forEach(area => {
  const form = area.closest("form"), sheet = area.querySelector("[data-sheet]"), canvas = area.querySelector("canvas");
  const box = area.querySelector("[data-box]"), note = area.querySelector("[role=status]"), field = name => form.elements["stamp_" + name];
  const names = ["left", "bottom", "width"], mm = 25.4 / 72;
  let page, scale, height;
  const chosen = name => form.querySelector(`[name="${name}"]:checked`);
  // The server has drawn the marks: the mark of the chosen certificate is shown, also while it is dragged.
  const mark = () => {
    for (const image of form.querySelectorAll("[data-mark]")) {
      image.src = area.dataset.marks + chosen("certificate").value + "/" + (image.dataset.form || chosen("stamp_form").value);
    }
  };
  form.addEventListener("change", e => {
    if (!/^(certificate|stamp_form)$/.test(e.target.name)) return;
    mark();
    if (!sheet.hidden) draw();
  });
  const draw = () => {
    const [left, bottom, wide] = names.map(name => Number(field(name).value) / mm * scale);
    const ratio = chosen("stamp_form").dataset, high = wide * ratio.high / ratio.wide;
    box.style.left = left + "px";
    box.style.top = height * scale - bottom - high + "px";
    box.style.width = wide + "px";
    box.style.height = high + "px";
    if (!sheet.hidden && !box.hidden) note.textContent = area.dataset.hint + " " + where(left + wide / 2, bottom + high / 2);
  };
  // Says in words where the middle of the mark is: in which third of the page, from above and from the left.
  const where = (x, y) => {
    const third = (at, all, words) => words.split("|")[Math.max(0, Math.min(2, Math.floor(3 * at / all)))];
    const words = [third(height * scale - y, height * scale, area.dataset.rows), third(x, canvas.width, area.dataset.columns)].filter(Boolean);
    return area.dataset.at.replace("{page}", field("page").value).replace("{place}", words.join(" "));
  };
  const show = async () => {
    note.textContent = area.dataset.none;
    sheet.hidden = box.hidden = true;
    const file = Array.from(form.elements.file.files).find(f => /\.pdf$/i.test(f.name));
    if (!file) return;
    try {
      const pdf = await import(area.dataset.script);
      pdf.GlobalWorkerOptions.workerSrc = area.dataset.worker;
      const task = pdf.getDocument({ data: await file.arrayBuffer(), enableXfa: false, stopAtErrors: false });
      const document = await task.promise;
      field("page").value = Math.min(Math.max(1, Number(field("page").value) || 1), document.numPages);
      page = await document.getPage(Number(field("page").value));
      sheet.hidden = false;
      const size = page.getViewport({ scale: 1 });
      scale = Math.min(sheet.clientWidth, 720) / size.width;
      height = size.height;
      const viewport = page.getViewport({ scale });
      canvas.width = viewport.width;
      canvas.height = viewport.height;
      await page.render({ canvas, canvasContext: canvas.getContext("2d"), viewport, annotationMode: 0 }).promise;
      box.hidden = false; // not before: it cannot be dragged on a page that has no size yet
      draw();
      await task.destroy();
    } catch (e) {
      sheet.hidden = true;
      note.textContent = area.dataset.failed;
    }
  };
  area.hidden = false;
  mark();
  area.querySelector("button").addEventListener("click", () => {
    form.elements.stamp.checked = true;
    show();
  });
  field("page").addEventListener("change", () => sheet.hidden || show());
  const byHand = () => form.elements.stamp_where.value = "hand";
  for (const name of names) field(name).addEventListener("input", () => {
    byHand();
    draw();
  });
  const put = (x, y) => {
    const wide = box.offsetWidth, high = box.offsetHeight;
    x = Math.max(0, Math.min(canvas.width - wide, x));
    y = Math.max(0, Math.min(canvas.height - high, y));
    field("left").value = Math.round(x / scale * mm);
    field("bottom").value = Math.max(0, Math.round((height - (y + high) / scale) * mm));
    byHand();
    draw();
  };
  let from;
  canvas.addEventListener("click", e => put(e.offsetX - box.offsetWidth / 2, e.offsetY - box.offsetHeight / 2));
  box.addEventListener("pointerdown", e => {
    from = { x: e.clientX - box.offsetLeft, y: e.clientY - box.offsetTop };
    box.setPointerCapture(e.pointerId);
  });
  box.addEventListener("pointermove", e => from && put(e.clientX - from.x, e.clientY - from.y));
  for (const end of ["pointerup", "pointercancel"]) box.addEventListener(end, () => from = null);
});
