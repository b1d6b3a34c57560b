// SPDX-License-Identifier: Apache-2.0
// Makes a whole zone take files, and sends its form when a file is there. Without scripts the field and a button do it.
"use strict";
function drops(within) {
  for (const form of within.querySelectorAll("[data-drop]")) {
    const zone = form.querySelector(".drop"), input = zone.querySelector("input[type=file]");
    zone.classList.add("live");
    zone.addEventListener("dragover", () => zone.classList.add("over"));
    for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
    input.addEventListener("change", () => { if (input.files.length) form.requestSubmit(); });
  }
}
drops(document);
