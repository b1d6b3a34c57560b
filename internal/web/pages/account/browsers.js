// SPDX-License-Identifier: Apache-2.0
// Switches notifications of this browser on and off, and marks it in the list.
;(async () => {
  const place = document.querySelector('[data-browsers]')
  if (!place || !('PushManager' in window) || !navigator.serviceWorker) return
  const form = place.querySelector('form[data-subscribe]')
  const show = name => { for (const p of place.querySelectorAll('[data-say]')) p.hidden = p.dataset.say !== name }
  const base64 = buffer => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '')
  const bytes = text => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), c => c.charCodeAt(0))
  const {pushManager} = await navigator.serviceWorker.ready
  let present = await pushManager.getSubscription()
  const id = present && base64(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(present.endpoint)))
  const row = id && [...place.querySelectorAll('[data-browser]')].find(r => r.dataset.browser === id)
  if (row) {
    row.querySelector('[data-this]').hidden = false
    const remove = row.querySelector('form[action$="/browser-delete"]')
    remove.addEventListener('submit', async event => {
      event.preventDefault()
      try { await present.unsubscribe() } finally { remove.submit() }
    }, {once: true})
    show('on')
    if (!('listed' in row.dataset)) form.hidden = false // an operator has removed it
  } else {
    show(Notification.permission === 'denied' ? 'denied' : 'off')
    form.hidden = Notification.permission === 'denied'
  }
  form.addEventListener('submit', async event => {
    event.preventDefault()
    const button = form.querySelector('button')
    button.disabled = true
    try {
      if (await Notification.requestPermission() !== 'granted') return show('denied')
      if (present && !row) { // it is of another person, or of another key
        await present.unsubscribe()
        present = null
      }
      present ??= await pushManager.subscribe({userVisibleOnly: true, applicationServerKey: bytes(form.dataset.subscribe)})
      form.elements.endpoint.value = present.endpoint
      form.elements.p256dh.value = base64(present.getKey('p256dh'))
      form.elements.auth.value = base64(present.getKey('auth'))
      form.submit()
    } catch {
      show('failed')
    } finally {
      button.disabled = false
    }
  })
})()
