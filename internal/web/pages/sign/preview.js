// SPDX-License-Identifier: Apache-2.0
// Draws the first page of a PDF, or a picture, in place of the sign of its kind. The file is read here and not sent for
// that, and nothing of it runs.
{
  const drawn = new WeakMap(), most = 64 << 20;
  let last = Promise.resolve(); // one after the other: two hundred files stay usable
  const put = (at, drawing) => {
    drawing.className = "thumb";
    drawing.ariaHidden = "true";
    if (at.isConnected) at.replaceWith(drawing);
  };
  const sheet = () => Object.assign(document.createElement("canvas"), { width: 80, height: 104 });
  const picture = async file => {
    const image = await createImageBitmap(file), canvas = sheet(), scale = Math.max(canvas.width / image.width, canvas.height / image.height);
    canvas.getContext("2d").drawImage(image, 0, 0, image.width * scale, image.height * scale);
    image.close();
    return canvas;
  };
  const page = async (file, form) => {
    const pdf = await import(form.dataset.script);
    pdf.GlobalWorkerOptions.workerSrc = form.dataset.worker;
    const task = pdf.getDocument({ data: await file.arrayBuffer(), enableXfa: false, stopAtErrors: false, verbosity: 0 });
    try {
      const first = await (await task.promise).getPage(1), size = first.getViewport({ scale: 1 }), canvas = sheet();
      const viewport = first.getViewport({ scale: canvas.width / size.width });
      await first.render({ canvas, canvasContext: canvas.getContext("2d"), viewport, annotationMode: 0 }).promise;
      return canvas;
    } finally {
      await task.destroy();
    }
  };
  for (const form of document.querySelectorAll("form[data-upload][data-script]")) {
    form.preview = (file, at) => {
      if (drawn.has(file)) {
        queueMicrotask(() => put(at, drawn.get(file)));
        return;
      }
      const draw = /\.pdf$/i.test(file.name) ? page : /\.(png|jpe?g|gif|webp)$/i.test(file.name) ? picture : null;
      if (!draw || file.size > most) return;
      last = last.then(async () => {
        if (!at.isConnected) return;
        try {
          drawn.set(file, await draw(file, form));
          put(at, drawn.get(file));
        } catch { /* the sign of the kind stays */ }
      });
    };
  }
}
