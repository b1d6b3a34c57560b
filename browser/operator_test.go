// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"

	"tamga/internal/tamgatest"
)

// TestOperatorLocks has an operator, whose browser runs no scripts, lock a user who is about
// to sign.
func TestOperatorLocks(t *testing.T) {
	s := start(t)
	demo := s.tab(t, looks[0])
	demo.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	demo.attach(`input[name=file]`, "a.txt", "text")

	b := s.tab(t, look{name: "no-script", language: "en", width: 360, noScript: true})
	b.signIn("/operator", s.Dev.Operator.Login, s.Dev.Operator.Password)
	b.press(`button[popovertarget="side"]`)
	b.press(`.side a[href="/operator/people"]`)
	b.wait(`main input[name=q]`)
	b.fill(`main input[name=q]`, "demo")
	b.press(`main form button`)
	b.wait(`main table a[href^="/operator/people/"]`)
	firstPerson(b)
	b.press(`button[popovertarget="lock"]`)
	b.see("All sessions and tokens of this person end")
	b.press(`#lock button.sure`)
	b.see("The account is locked")
	b.check("operator-locked-without-scripts")

	demo.press(`main form button:not([name]):not([type])`)
	demo.see("Nothing was done or changed")
	demo.wait(`main a[href="/sign-in?to=%2Fsign"]`)
	if n := value[int](demo, `document.querySelector("input[name=file]").files.length`); n != 1 {
		t.Errorf("the form has %d files, want the one that is not signed", n)
	}
}

// TestOperatorOnPhone has an operator on a narrow phone without scripts correct a refused form,
// search the audit log up to a day, and cancel an operation of a user.
func TestOperatorOnPhone(t *testing.T) {
	s := start(t)
	ums := tamgatest.NewUMS(s.Server)
	of := "/ums/user/" + s.Dev.User.ID
	for _, to := range []string{"phones", "phones/79250000078/confirm", "phones/79250000078/secondaryauth", "authmethod/otpviasms?level=1", "operationpolicy"} {
		ums.OK(tamgatest.Ours, "POST", of+"/"+to, map[string]string{"phones": `"79250000078"`, "operationpolicy": "[2]"}[to])
	}
	demo := s.tab(t, looks[0])
	demo.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	signWaiting(demo)

	b := s.tab(t, look{name: "narrow-ru-no-script", language: "ru", width: 320, phone: true, noScript: true})
	b.statuses = false // a refused form is 400
	b.signIn("/operator", s.Dev.Operator.Login, s.Dev.Operator.Password)
	b.open("/operator/people/new")
	b.fill(`input[name=login]`, "kept")
	b.fill(`input[name=phone]`, "12")
	b.press(`main form[method=post] button`)
	b.see("Номер телефона")
	b.until(`document.querySelector("input[name=login]").value === "kept" && document.querySelector("input[name=phone][aria-invalid=true]") !== null`)
	b.check("operator-refused")

	b.open("/operator/groups")
	b.see("нет, действуют общие")
	b.reachable()
	b.check("operator-groups")

	b.open("/operator/audit?until=2020-01-31")
	b.see("Записей нет.")
	b.until(`document.querySelector("input[name=until]").value === "2020-01-31"`)

	b.open("/operator/operations")
	b.see(s.Dev.User.Login)
	b.reachable()
	b.check("operator-operations")
	cancel := value[string](b, `document.querySelector("main a[href*='/operation-cancel']").getAttribute("href")`)
	b.press(`main a[href*="/operation-cancel"]`)
	b.see("ничего не будет подписано")
	b.press(`main form[method=post] button`)
	b.see("Операция отменена.")
	b.check("operator-cancelled")
	// The form of a second tab, or one that the back button shows, says the same.
	b.open(cancel)
	b.press(`main form[method=post] button`)
	b.see("Операция отменена.")
	b.open("/operator/operations")
	b.see("Незавершённых операций нет.")
}

// TestOperatorsApprove has an operator on a narrow phone ask for what a second one must approve, and
// carry it out after that.
func TestOperatorsApprove(t *testing.T) {
	s := start(t, "--set", "users.second_operator=[ends_access, adds_factor]")
	tamgatest.NewUMS(s.Server) // has the second operator
	at := "/operator/people/" + s.Dev.User.ID
	b := s.tab(t, look{name: "narrow-ru-no-script", language: "ru", width: 320, phone: true, noScript: true})
	b.statuses = false // a form that waits is 400
	b.signIn("/operator", s.Dev.Operator.Login, s.Dev.Operator.Password)
	b.open(at + "/method-add-otpviaemail")
	b.press(`main form[method=post] button`)
	b.see("Изменение отложено")
	b.open(at + "/lock")
	b.press(`main form[method=post] button`)
	b.see("нужно одобрение второго оператора")
	b.check("operator-waits")
	b.press(`main a.btn`)
	b.see("Заблокировать")
	b.see("сразу")
	b.check("operator-change")
	change := value[string](b, `location.pathname`)
	b.open("/operator/approvals")
	b.see("SetUserAuthenticationMethodOtpViaEmail")
	b.reachable()
	b.check("operator-changes")

	second := s.tab(t, looks[0])
	second.signIn(change, tamgatest.TwoGroup, tamgatest.Password)
	second.press(`main a[href*="/approval-approve"]`)
	second.see("Approve only what you have checked.")
	second.press(`main form[method=post] button`)
	second.see("The change is approved.")
	second.check("operator-approved")

	b.open(change)
	b.press(`main a[href^="` + at + `/lock?approval="]`)
	b.press(`main form[method=post] button`)
	b.see("Учётная запись заблокирована.")
}

// reachable checks that the links in tables of the page are in the window, without scrolling
// sideways.
func (b *tab) reachable() {
	b.Helper()
	far := value[[]string](b, `Array.from(document.querySelectorAll("main td a")).filter(a => a.getBoundingClientRect().right > innerWidth).map(a => a.textContent)`)
	if n := value[int](b, `document.querySelectorAll("main td a").length`); n == 0 || len(far) > 0 {
		b.Errorf("of %d links in tables, these are outside the window: %q", n, far)
	}
}

// TestOperatorDecides has an operator compare a request with the record on a narrow phone without scripts, and approve
// it after a tick.
func TestOperatorDecides(t *testing.T) {
	s := start(t, "--set", "certificates.approval=operator")
	wide := s.tab(t, looks[1])
	wide.signIn("/operator/requests", s.Dev.Operator.Login, s.Dev.Operator.Password)
	wide.wait(`[data-wait]`)
	demo := s.tab(t, looks[0])
	demo.signIn("/certificates/request", s.Dev.User.Login, s.Dev.User.Password)
	demo.fill(`input[id="name.2.5.4.3"]`, "Фёдоров Александр Ильич")
	demo.press(`main form[method=post] button:not([name])`)
	demo.wait(`a[href^="/certificate-requests/"]`)

	wide.wait(`main a[href*="/request-approve"]`) // the list is renewed by itself
	wide.press(`main a[href*="/request-approve"]`)
	wide.see("Имя в запросе отличается от карточки")
	wide.check("operator-request")

	b := s.tab(t, look{name: "narrow-ru-no-script", language: "ru", width: 320, phone: true, noScript: true})
	b.signIn("/operator/requests", s.Dev.Operator.Login, s.Dev.Operator.Password)
	b.press(`main a[href*="/request-approve"]`)
	b.see("Что просят и что известно")
	b.check("operator-request")
	b.press(`input[name=seen]`)
	b.fill(`input[name=document]`, "Паспорт 45 00 000000, 29.11.2026")
	b.press(`form[action*="/request-approve"] button`)
	b.see("Запрос одобрен.")
	demo.open("/certificates")
	demo.see("Фёдоров Александр Ильич")
}
