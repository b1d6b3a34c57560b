// SPDX-License-Identifier: Apache-2.0
// Loads the page again when what it waits for has happened. Without scripts a link does it.
(() => {
  const mark = document.querySelector('[data-wait]')
  if (!mark) return
  const state = 'data-wait="' + mark.dataset.wait + '"'
  const look = async () => {
    try {
      const answer = await fetch(location.href, {cache: 'no-store', redirect: 'manual'})
      if (!answer.ok || !(await answer.text()).includes(state)) return location.reload()
    } catch { /* the network is away for a moment */ }
    setTimeout(look, 3000)
  }
  setTimeout(look, 3000)
})()
