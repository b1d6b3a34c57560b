// SPDX-License-Identifier: Apache-2.0
"use strict";
// Adds progress to the form of an upload. Without it the browser sends the form itself.
function attach(form) {
  const progress = form.querySelector("[data-progress]"), status = form.querySelector("[data-status]");
  const list = form.querySelector("[data-files]"), input = form.querySelector("input[type=file]");
  // Files that are chosen later join those that are there.
  let there = Array.from(input.files);
  const put = files => {
    const all = new DataTransfer();
    for (const file of there = files) all.items.add(file);
    input.files = all.files;
    if (list) show();
    form.dispatchEvent(new Event("files"));
  };
  const add = (files, field = input) => {
    if (field !== input) {
      field.files = files;
      return;
    }
    const same = (a, b) => a.name === b.name && a.size === b.size && a.lastModified === b.lastModified;
    put(there.concat(Array.from(files).filter(f => !there.some(old => same(old, f)))));
    if (form.hasAttribute("data-at-once") && files.length) form.requestSubmit();
  };
  const show = () => {
    list.replaceChildren(...there.map((file, i) => {
      const item = document.createElement("li"), kind = document.createElement("span"), text = document.createElement("div");
      const name = document.createElement("bdi"), hint = document.createElement("p"), bar = document.createElement("progress"), remove = document.createElement("button");
      name.textContent = file.name.replace(/[\p{Cc}\p{Cf}]/gu, " "); // no character that hides what a name ends with
      name.className = "name";
      kind.className = "kind";
      kind.ariaHidden = "true";
      kind.textContent = (/\.([^.]{1,5})$/.exec(name.textContent)?.[1] ?? "").toUpperCase();
      hint.className = "hint";
      hint.textContent = [formOf(file.name, list), sizeOf(file.size, list)].filter(Boolean).join(", ");
      text.append(name, hint);
      remove.type = "button";
      remove.className = "btn quiet small";
      remove.textContent = list.dataset.remove;
      remove.setAttribute("aria-label", list.dataset.remove + ": " + name.textContent);
      remove.addEventListener("click", () => {
        put(there.filter((_, at) => at !== i));
        (list.querySelectorAll("button")[Math.min(i, there.length - 1)] ?? input).focus();
      });
      const more = document.createElement("div");
      more.className = "more";
      more.append(bar);
      item.append(kind, text, remove, more);
      bar.max = 1;
      bar.value = 0;
      bar.hidden = true;
      bar.setAttribute("aria-label", name.textContent);
      return item;
    }));
    if (form.preview) there.forEach((file, i) => form.preview(file, list.children[i].firstElementChild));
    const zone = input.closest(".drop");
    zone.classList.toggle("tall", !there.length && !form.elements.stored);
  };
  if (list && there.length) show();
  input.addEventListener("change", () => add(input.files));
  for (const drop of form.querySelectorAll(".drop")) {
    const field = drop.querySelector("input");
    drop.classList.add("live");
    for (const name of ["dragover", "dragleave", "drop"]) {
      drop.addEventListener(name, event => {
        event.preventDefault();
        event.stopPropagation();
        drop.classList.toggle("over", name === "dragover");
        if (name === "drop") {
          away();
          if (event.dataTransfer.files.length) add(event.dataTransfer.files, field);
        }
      });
    }
  }
  form.taken = add;
  if (typeof compare === "function") compare(form);
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
      // The answer is a page of this server. A form that may be sent again keeps its files, and the same form of
      // the answer gets them.
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      const reason = page.querySelector("[data-again]");
      stop("");
      document.querySelector("footer").replaceWith(page.querySelector("footer")); // it names the request
      if (refusal && reason) return refuse(reason);
      const next = page.querySelector("form[data-replace] input[type=file]");
      document.querySelector("main").replaceWith(page.querySelector("main"));
      if (next) {
        next.files = input.files;
        // A password that was right is in the form as its files are. The page opens the field for one that was not.
        const secret = next.form.elements.password;
        if (secret && !secret.closest("details[open]")) secret.value = form.elements.password.value;
      }
      document.title = page.title;
      window.scrollTo(0, 0);
      document.querySelector("main").focus();
      if (typeof drops === "function") drops(document.querySelector("main"));
      document.querySelectorAll("form[data-upload]").forEach(attach);
    });
    const body = new FormData(form, event.submitter); // while the button is not disabled
    progress.hidden = false;
    if (list) for (const bar of list.querySelectorAll("progress")) bar.hidden = false;
    for (const b of form.querySelectorAll("button")) b.disabled = true;
    status.textContent = "";
    if (refusal) forget();
    request.send(body);
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
// The way in which a file is signed unless the person says otherwise, in words.
function formOf(name, list) {
  const forms = JSON.parse(list.dataset.forms ?? "{}"), ending = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  return forms[ending] ?? forms["*"];
}
// A size as people write it, with the units of the page.
function sizeOf(bytes, list) {
  const units = list.dataset.units.split(" ");
  let at = 0;
  for (; bytes >= 1000 && at < units.length - 1; at++) bytes /= 1000;
  return bytes.toLocaleString(document.documentElement.lang, { maximumFractionDigits: at ? 1 : 0 }) + "\u00a0" + units[at];
}
// Files are dropped anywhere on the page. The sign of that covers the page while they are dragged.
const cover = () => document.querySelector("[data-catch]");
const away = () => { if (cover()) cover().hidden = true; };
const holds = event => event.dataTransfer && event.dataTransfer.types.includes("Files");
window.addEventListener("dragover", event => {
  if (!holds(event) || !cover()) return;
  event.preventDefault();
  cover().hidden = false;
});
window.addEventListener("dragleave", event => { if (!event.relatedTarget) away(); });
window.addEventListener("drop", event => {
  const form = document.querySelector("form[data-upload]");
  if (!holds(event) || !form || !form.taken) return;
  event.preventDefault();
  away();
  form.taken(event.dataTransfer.files);
});
document.querySelectorAll("form[data-upload]").forEach(attach);
