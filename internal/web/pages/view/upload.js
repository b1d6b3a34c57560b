// SPDX-License-Identifier: Apache-2.0
"use strict";
// Adds progress to the form of an upload. Without it the browser sends the form itself.
function attach(form) {
  const progress = form.querySelector("[data-progress]"), status = form.querySelector("[data-status]");
  const list = form.querySelector("[data-files]"), input = form.querySelector("input[type=file]");
  input.addEventListener("change", () => {
    if (!list) return;
    list.replaceChildren(...Array.from(input.files, (file, i) => {
      const item = document.createElement("li"), name = document.createElement("bdi");
      const bar = document.createElement("progress"), remove = document.createElement("button");
      name.textContent = file.name.replace(/[\p{Cc}\p{Cf}]/gu, " "); // no character that hides what a name ends with
      remove.type = "button";
      remove.className = "btn quiet small";
      remove.textContent = list.dataset.remove;
      remove.setAttribute("aria-label", list.dataset.remove + ": " + name.textContent);
      remove.addEventListener("click", () => {
        const left = new DataTransfer();
        Array.from(input.files).forEach((one, at) => at === i || left.items.add(one));
        input.files = left.files;
        input.dispatchEvent(new Event("change"));
        (list.querySelectorAll("button")[Math.min(i, left.files.length - 1)] ?? input).focus();
      });
      item.append(name, " ", remove, bar);
      bar.max = 1;
      bar.value = 0;
      bar.hidden = true;
      bar.setAttribute("aria-label", name.textContent);
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
  const refusal = form.querySelector("[data-refusal]"), usual = document.createComment("");
  if (refusal) refusal.before(usual); // the place of a reason that is about no single field
  const forget = () => {
    for (const field of form.querySelectorAll("[aria-invalid]")) {
      field.removeAttribute("aria-invalid");
      field.setAttribute("aria-describedby", field.getAttribute("aria-describedby").replace(" " + refusal.id, ""));
    }
    refusal.hidden = true;
  };
  // Shows why the form was refused, at the field that is wrong. Secrets are typed again.
  const refuse = reason => {
    const wrong = form.elements[reason.dataset.again];
    refusal.replaceChildren(...reason.children);
    refusal.hidden = false;
    for (const secret of form.querySelectorAll("input[type=password]")) secret.value = "";
    if (list) spread(0);
    if (!wrong) {
      usual.after(refusal);
      return refusal.focus();
    }
    wrong.parentElement.append(refusal);
    wrong.setAttribute("aria-invalid", "true");
    wrong.setAttribute("aria-describedby", (wrong.getAttribute("aria-describedby") ?? "") + " " + refusal.id);
    wrong.focus();
  };
  const stop = text => {
    progress.hidden = true;
    for (const b of form.querySelectorAll("button")) b.disabled = false;
    status.textContent = text;
  };
  form.addEventListener("submit", event => {
    if (event.submitter && event.submitter.name === "answer") return; // the browser saves the answer
    event.preventDefault();
    let bytes = 0;
    for (const field of form.querySelectorAll("input[type=file]")) for (const file of field.files) bytes += file.size;
    if (bytes > Number(form.dataset.most)) return stop(form.dataset.large);
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    let whole = false; // all of the form is sent
    request.upload.addEventListener("load", () => whole = true);
    request.upload.addEventListener("progress", e => {
      if (!e.lengthComputable) return;
      progress.value = 100 * e.loaded / e.total;
      if (list) spread(e.loaded);
      if (e.loaded === e.total) status.textContent = form.dataset.busy;
    });
    request.addEventListener("error", () => stop(whole ? form.dataset.lost : form.dataset.cut));
    request.addEventListener("load", () => {
      if (request.responseURL !== new URL(form.action, location.href).href) {
        location.assign(request.responseURL);
        return;
      }
      // The answer is a page of this server. A form that gets an answer keeps its files, and so does
      // one that may be sent again.
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      const here = document.querySelector("[data-answer]"), answer = page.querySelector("[data-answer]");
      const reason = page.querySelector("[data-again]");
      stop("");
      document.querySelector("footer").replaceWith(page.querySelector("footer")); // it names the request
      if (refusal && reason) return refuse(reason);
      if (here) {
        here.replaceChildren(...(answer ? answer.children : page.querySelectorAll("main > .stack > :not(h1)")));
        here.scrollIntoView();
        return;
      }
      document.querySelector("main").replaceWith(page.querySelector("main"));
      document.title = page.title;
      document.querySelector("main").focus();
      document.querySelectorAll("form[data-upload]").forEach(attach);
    });
    progress.hidden = false;
    if (list) for (const bar of list.querySelectorAll("progress")) bar.hidden = false;
    for (const b of form.querySelectorAll("button")) b.disabled = true;
    status.textContent = "";
    if (refusal) forget();
    request.send(new FormData(form));
  });
  // The browser sends the files one after the other, so the bytes sent tell how far each is.
  const spread = sent => {
    Array.from(input.files).forEach((file, i) => {
      const bar = list.children[i] && list.children[i].querySelector("progress");
      if (bar) bar.value = file.size ? Math.max(0, Math.min(1, sent / file.size)) : 1;
      sent -= file.size;
    });
  };
}
document.querySelectorAll("form[data-upload]").forEach(attach);
