// SPDX-License-Identifier: Apache-2.0

// Adds revisions to documents with an incremental fork of pdf-lib. The input is JSON: the value of the field, its name,
// and for each document the edit, the input and the output.
const { readFileSync, writeFileSync } = require("fs");
const { PDFDocument, rgb } = require("@cantoo/pdf-lib");

async function edit(order, job) {
  const doc = await PDFDocument.load(readFileSync(job.in), { forIncrementalUpdate: true, updateMetadata: false });
  if (job.edit === "fill") {
    doc.getForm().getTextField(order.field).setText(order.value);
  } else if (job.edit === "information") {
    doc.setTitle("Another title");
  } else {
    doc.getPage(0).drawRectangle({ x: 72, y: 600, width: 200, height: 50, color: rgb(0, 0, 0) });
  }
  writeFileSync(job.out, await doc.save());
}

(async () => {
  const order = JSON.parse(readFileSync(0, "utf8"));
  for (const job of order.jobs) {
    await edit(order, job);
  }
})().catch((e) => {
  console.error(e);
  process.exit(1);
});
