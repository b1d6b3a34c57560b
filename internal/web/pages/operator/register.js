// SPDX-License-Identifier: Apache-2.0
// Proposes a login as soon as the name is typed, while the person has typed no other.
(() => {
	const form = document.querySelector("[data-propose]");
	if (!form) return;
	const { surname, given, login } = form.elements;
	let own = login.value !== "", last = 0;
	login.addEventListener("input", () => { own = login.value !== ""; });
	const propose = async () => {
		if (own || !surname.value.trim() && !given.value.trim()) return;
		const number = ++last;
		try {
			const answer = await fetch(form.dataset.propose, { method: "POST", body: new URLSearchParams({ surname: surname.value, given: given.value }) });
			if (!answer.ok) return;
			const page = new DOMParser().parseFromString(await answer.text(), "text/html");
			if (own || number !== last) return;
			login.value = page.getElementById("login").value;
			document.getElementById("login-hint").textContent = page.getElementById("login-hint").textContent;
		} catch { } // the person types one
	};
	surname.addEventListener("change", propose);
	given.addEventListener("change", propose);
})();
