// SPDX-License-Identifier: Apache-2.0
// Tells the server the time zone of the browser.
;(() => {
  try {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
    const secure = location.protocol === 'https:' ? '; Secure' : ''
    if (zone) document.cookie = 'tamga-zone=' + zone + '; Path=/; Max-Age=31536000; SameSite=Lax' + secure
  } catch { /* the installation's zone is shown */ }
})()
