// SPDX-License-Identifier: Apache-2.0
// The command of an operation follows its form. Without scripts the form is sent.
(() => {
  const form = document.querySelector('form[data-method]')
  const command = document.querySelector('[data-curl]')
  if (!form || !command) return
  const quoted = text => "'" + text.replaceAll("'", "'\\''") + "'"
  form.addEventListener('input', () => {
    let address = form.dataset.path
    const query = [], parts = []
    for (const field of form.querySelectorAll('[data-in]')) {
      const name = field.dataset.name, value = field.querySelector('input,textarea').value.trim()
      switch (field.dataset.in) {
        case 'path': address = address.replaceAll('{' + name + '}', encodeURIComponent(value || name.toUpperCase())); break
        case 'query': if (value) query.push([name, value]); break
        case 'header': if (value) parts.push('-H ' + quoted(name + ': ' + value)); break
        case 'body':
          // A line break in JSON is never inside a text.
          parts.push("-H 'Content-Type: application/json'", '--data-raw ' + quoted(value.replace(/\s*\n\s*/g, '')))
      }
    }
    query.sort((a, b) => a[0] < b[0] ? -1 : 1)
    if (query.length) address += '?' + new URLSearchParams(query)
    const lines = ['curl -X ' + form.dataset.method + ' ' + quoted(form.dataset.address + address)]
    if ('token' in form.dataset) lines.push('-H "Authorization: Bearer $TOKEN"')
    command.textContent = lines.concat(parts).join(' \\\n  ')
  })
})()
