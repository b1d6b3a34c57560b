// SPDX-License-Identifier: Apache-2.0
// Searches for recipients without sending the files of the form.
document.addEventListener("click", async event => {
  const button = event.target.closest("[data-find]");
  if (!button) return;
  const form = button.form, place = form.querySelector("[data-found]"), query = form.elements.q;
  event.preventDefault();
  // The people who are ticked stay chosen.
  const chosen = form.querySelector("[data-chosen]");
  for (const box of place.querySelectorAll("input:checked")) chosen.append(box.closest("li"));
  button.disabled = true;
  try {
    const answer = await fetch(button.dataset.find + "?q=" + encodeURIComponent(query.value), { cache: "no-store" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html"), found = page.querySelector("[data-found]");
    if (!answer.ok || !found) throw new Error();
    place.replaceChildren(...found.children);
    for (const box of place.querySelectorAll("input")) {
      if (Array.from(chosen.querySelectorAll("input")).some(one => one.value === box.value)) box.closest("li").remove();
    }
  } catch {
    place.textContent = button.dataset.lost;
  }
  button.disabled = false;
});
// Enter in the search field searches.
document.addEventListener("keydown", event => {
  if (event.key !== "Enter" || !event.target.matches || !event.target.matches("[data-query]")) return;
  event.preventDefault();
  event.target.form.querySelector("[data-find]").click();
});
