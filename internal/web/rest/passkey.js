// SPDX-License-Identifier: Apache-2.0
// Asks a passkey for what a form says, and sends the answer with the form.
(() => {
  const form = document.querySelector('form[data-passkey]')
  const start = form?.querySelector('[data-passkey-start]')
  if (!start || !window.PublicKeyCredential) return
  const failed = form.querySelector('[data-passkey-failed]')
  const bytes = text => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), c => c.charCodeAt(0))
  const text = buffer => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '')
  const known = list => (list ?? []).map(c => ({...c, id: bytes(c.id)}))
  start.addEventListener('click', async () => {
    if (!form.reportValidity()) return
    start.disabled = failed.hidden = true
    try {
      const o = JSON.parse(form.dataset.options)
      o.challenge = bytes(o.challenge)
      let made
      if (form.dataset.passkey === 'create') {
        o.user.id = bytes(o.user.id)
        o.excludeCredentials = known(o.excludeCredentials)
        made = await navigator.credentials.create({publicKey: o})
      } else {
        o.allowCredentials = known(o.allowCredentials)
        made = await navigator.credentials.get({publicKey: o})
      }
      const response = {}
      for (const name of ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']) {
        if (made.response[name]) response[name] = text(made.response[name])
      }
      form.elements.passkey.value = JSON.stringify({id: made.id, rawId: text(made.rawId), type: made.type, response})
      form.submit()
    } catch {
      start.disabled = failed.hidden = false
    }
  })
  // Enter would send the form without an answer, or press a button of another way.
  form.addEventListener('keydown', event => {
    if (event.key !== 'Enter' || !event.target.matches('input')) return
    event.preventDefault()
    start.click()
  })
  form.querySelector('[data-passkey-off]').hidden = true
  start.hidden = false
})()
