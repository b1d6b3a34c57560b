// SPDX-License-Identifier: Apache-2.0
"use strict";
// Adds progress to the form of an upload. Without it the browser sends the form itself.
function attach(form) {
  const progress = form.querySelector("[data-progress]"), status = form.querySelector("[data-status]");
  const list = form.querySelector("[data-files]"), button = form.querySelector("button"), input = form.querySelector("input[type=file]");
  input.addEventListener("change", () => {
    if (!list) return;
    list.replaceChildren(...Array.from(input.files, file => {
      const item = document.createElement("li");
      item.textContent = file.name;
      return item;
    }));
  });
  for (const drop of form.querySelectorAll(".drop")) {
    const field = drop.querySelector("input");
    for (const name of ["dragover", "dragleave", "drop"]) {
      drop.addEventListener(name, event => {
        event.preventDefault();
        drop.classList.toggle("over", name === "dragover");
        if (name === "drop" && event.dataTransfer.files.length) {
          field.files = event.dataTransfer.files;
          field.dispatchEvent(new Event("change"));
        }
      });
    }
  }
  const stop = text => {
    progress.hidden = true;
    button.disabled = false;
    status.textContent = text;
  };
  form.addEventListener("submit", event => {
    event.preventDefault();
    let bytes = 0;
    for (const field of form.querySelectorAll("input[type=file]")) for (const file of field.files) bytes += file.size;
    if (bytes > Number(form.dataset.most)) return stop(form.dataset.large);
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.upload.addEventListener("progress", e => {
      if (!e.lengthComputable) return;
      progress.value = 100 * e.loaded / e.total;
      if (e.loaded === e.total) status.textContent = form.dataset.busy;
    });
    request.addEventListener("error", () => stop(form.dataset.lost));
    request.addEventListener("load", () => {
      if (request.responseURL !== new URL(form.action, location.href).href) {
        location.assign(request.responseURL);
        return;
      }
      // The answer is a page of this server: show it in place of this one.
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      document.querySelector("main").replaceWith(page.querySelector("main"));
      document.title = page.title;
      document.querySelector("main").focus();
      document.querySelectorAll("form[data-upload]").forEach(attach);
    });
    progress.hidden = false;
    button.disabled = true;
    status.textContent = "";
    request.send(new FormData(form));
  });
}
document.querySelectorAll("form[data-upload]").forEach(attach);
